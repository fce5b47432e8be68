import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v7 as uuid } from "uuid";
import { afterEach, describe, expect, it, vi } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import {
  createDockerEngine,
  type DockerEngineOptions,
} from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { createMountKeeper } from "../../services/orchestrator/engines/docker/mounts/keeper.ts";
import { EngineFailure, EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";
import { createDirectoryVolumes } from "../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { nextStart, UNHURRIED } from "./allocations.ts";
import { SILENT } from "./docker-harness.ts";
import { bind, named, useVolumes } from "./docker-volume-harness.ts";

const OURS = ["mounts.named", "mounts.bind", "mounts.options", "patches.copy"];
const claimed = (features: readonly string[]) => OURS.filter((each) => features.includes(each));

describeWithDocker("docker engine: whether volumes can be mounted", ({ host, network }) => {
  const harness = useVolumes(host, [IMAGES.busybox], ["data"]);
  const { docker, installationId, run, container, sandbox, volumes, root } = harness;
  const anew = (options: Partial<DockerEngineOptions["docker"]> = {}, store = volumes) =>
    createDockerEngine({
      installationId,
      docker: { host, ...options },
      log: SILENT,
      volumes: store,
    });

  it("is claimed once it was done, with a container that is gone then", async () => {
    const tried = anew();
    expect(claimed(tried.features())).toEqual([]);
    expect(await tried.mounting()).toMatchObject({ possible: true });
    expect(claimed(tried.features())).toEqual(OURS);
    expect(tried.features()).not.toContain("mounts.disk_image");
    const label = [`dev.sandgate.gate=${installationId}`];
    expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
    const nobody = "00000000-0000-0000-0000-000000000000";
    expect(await readdir(root)).toEqual([nobody]);
  });

  it("does not depend on network policies", async () => {
    const tried = anew({ networkPolicy: "unenforced" });
    expect(await tried.mounting()).toMatchObject({ possible: true });
    const mounts = [named("data", "/d", { readonly: true })];
    for (const enabled of [true, false]) {
      const one = sandbox(mounts, { network: { enabled } });
      await tried.ensureRunning(one, UNHURRIED);
      expect(await run(one, "touch", "/d/x")).toMatch(/Read-only/);
      expect(await tried.ensureRunning(one, UNHURRIED)).toMatchObject({ state: "running" });
    }
  });

  it("is not claimed, and nothing is started, where it cannot be done", async () => {
    const one = sandbox([bind("", "/d")]);
    const tried = anew();
    vi.stubEnv("PATH", "/nonexistent");
    try {
      const { possible, why } = await createDockerEngine({
        installationId,
        docker: { host: "tcp://127.0.0.1:1" },
        log: SILENT,
        volumes,
      }).mounting();
      expect([possible, why]).toEqual([false, expect.stringMatching(/not on this machine/)]);
      const without = createDockerEngine({ installationId, docker: { host }, log: SILENT });
      expect(await without.mounting()).toMatchObject({ possible: false });
      await expect(without.ensureRunning(one, UNHURRIED)).rejects.toThrow(
        /volumes cannot be mounted here: there is no folder/,
      );
    } finally {
      vi.unstubAllEnvs();
    }
    expect(await tried.ensureRunning(one, UNHURRIED)).toMatchObject({ state: "running" });
  });

  it("is found out where the daemon sees another folder", async ({ skip }) => {
    if (network === null) skip("needs a Docker daemon of the tests' own");
    const folder = await mkdtemp(join(tmpdir(), "sandgate-unseen-"));
    const store = createDirectoryVolumes({ root: folder });
    await store.directory({ orgId: uuid(), volumeId: uuid() });
    // The daemon does not see what is mounted here now, and has what was there before.
    const nobody = "00000000-0000-0000-0000-000000000000";
    await store.directory({ orgId: nobody, volumeId: nobody });
    execFileSync("mount", ["--make-private", "-t", "tmpfs", "tmpfs", folder]);
    try {
      const tried = anew({}, store);
      const { possible, why } = await tried.mounting();
      expect(possible).toBe(false);
      expect(why).toMatch(/folder of volumes is not the one/);
      expect(claimed(tried.features())).toEqual([]);
      const one = sandbox([named("data", "/d")]);
      await expect(tried.ensureRunning(one, UNHURRIED)).rejects.toThrow(EngineFailure);
    } finally {
      // Volumes stay open for a moment.
      execFileSync("umount", ["--lazy", folder]);
      await rm(folder, { recursive: true });
    }
  });

  it("is refused to a sandbox that was made with another folder", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sandgate-moved-"));
    const moved = anew({}, createDirectoryVolumes({ root: folder }));
    const one = sandbox([named("data", "/d")]);
    await moved.ensureRunning(one, UNHURRIED);
    await moved.stop(one, 0);
    const another = "the folder of volumes is not the one that the sandbox was made with";
    await expect(anew().ensureRunning(nextStart(one), UNHURRIED)).rejects.toThrow(another);
    await rm(folder, { recursive: true });
    const third = nextStart(nextStart(one));
    await expect(anew().ensureRunning(third, UNHURRIED)).rejects.toThrow(another);
  });

  it("is judged anew when the gate was taken away", async () => {
    const one = sandbox([named("data", "/d")]);
    const tried = anew({ networkPolicy: "unenforced" });
    await tried.mounting();
    const emptier = await docker.createContainer({
      Image: IMAGES.busybox.name,
      Cmd: ["sh", "-c", "rm /v/*"],
      HostConfig: { Binds: [`sandgate-${installationId}-gate:/v`], AutoRemove: true },
    });
    const gone = emptier.wait({ condition: "removed" });
    await emptier.start();
    await gone;
    expect(await tried.ensureRunning(one, UNHURRIED)).toMatchObject({ state: "running" });
    expect((await container(one).inspect()).State.Running).toBe(true);
  });
});

describe("what is known of volumes", () => {
  afterEach(() => vi.restoreAllMocks());

  it("is kept while the daemon is gone, and looked at again", async () => {
    vi.spyOn(process, "getuid").mockReturnValue(0);
    const outcomes: (Error | undefined)[] = [];
    const keeper = createMountKeeper({
      docker: connectDocker({ host: "unix:///nonexistent" }),
      installationId: uuid(),
      host: async () => ({ vcpus: 1, memoryMib: 1, architecture: "amd64", hasInit: true }),
      isLocal: true,
      runtime: undefined,
      volumes: createDirectoryVolumes({ root: "/nonexistent" }),
      play: async () => {
        const outcome = outcomes.shift();
        if (outcome) throw outcome;
      },
    });
    // Before anything is known, as with a disk that is not mounted at a start.
    outcomes.push(new EngineUnavailable("gone"));
    await expect(keeper.look()).rejects.toThrow(EngineUnavailable);
    expect(keeper.features()).toEqual([]);
    keeper.lookAgain();
    await expect.poll(() => claimed(keeper.features())).toEqual(OURS);
    expect(await keeper.look()).toMatchObject({ possible: true });
    outcomes.push(new EngineUnavailable("gone"));
    await expect(keeper.look()).rejects.toThrow(EngineUnavailable);
    expect(claimed(keeper.features())).toEqual(OURS);
    outcomes.push(new Error("cut off"), new Error("no flags"));
    expect(await keeper.look()).toEqual({ possible: false, why: "no flags" });
    expect(keeper.features()).toEqual([]);
    keeper.lookAgain();
    await expect.poll(() => claimed(keeper.features())).toEqual(OURS);
  });

  it("is known of disk images apart, and they need not be possible for volumes", async () => {
    vi.spyOn(process, "getuid").mockReturnValue(0);
    const outcomes: (Error | undefined)[] = [];
    const keeper = (diskImages: "refused" | "loop") =>
      createMountKeeper({
        docker: connectDocker({ host: "unix:///nonexistent" }),
        installationId: uuid(),
        host: async () => ({ vcpus: 1, memoryMib: 1, architecture: "amd64", hasInit: true }),
        isLocal: true,
        runtime: undefined,
        volumes: createDirectoryVolumes({ root: "/nonexistent" }),
        diskImages,
        play: async () => undefined,
        playImages: async () => {
          const outcome = outcomes.shift();
          if (outcome) throw outcome;
        },
      });
    const refusing = keeper("refused");
    expect((await refusing.look()).images).toBeUndefined();
    expect(refusing.features()).toEqual(OURS);
    await expect(refusing.gate(true)).rejects.toThrow(EngineFailure);
    expect(await refusing.gate(false)).toBeInstanceOf(Buffer);
    const accepting = keeper("loop");
    outcomes.push(new Error("no ext4"), new Error("no ext4"));
    expect((await accepting.look()).images).toEqual({ possible: false, why: "no ext4" });
    expect(accepting.features()).toEqual(OURS);
    expect(await accepting.gate()).toBeInstanceOf(Buffer);
    outcomes.push(new Error("no ext4"), new Error("still none"));
    await expect(accepting.gate(true)).rejects.toThrow(/disk images .* here: still none/);
    accepting.lookAgain();
    await expect.poll(() => accepting.features()).toEqual([...OURS, "mounts.disk_image"]);
    expect(await accepting.gate(true)).toBeInstanceOf(Buffer);
  });
});
