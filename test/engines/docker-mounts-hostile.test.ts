import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { v7 as uuid } from "uuid";
import { expect, it } from "vitest";
import { HostProcess } from "../../services/orchestrator/engines/docker/gate/held-process.ts";
import { makeMounts } from "../../services/orchestrator/engines/docker/mounts/make-mounts.ts";
import type { VolumeMount } from "../../services/orchestrator/engines/docker/mounts/plan.ts";
import { locateSources } from "../../services/orchestrator/engines/docker/mounts/sources.ts";
import { stagedMount } from "../../services/orchestrator/engines/docker/mounts/stage.ts";
import { EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { bind, named, tmpfs, useVolumes } from "./docker-volume-harness.ts";

const TRIES = 200;
const NO_FLAGS = { readonly: false, noexec: false, nosuid: false, nodev: false };

describeWithDocker("docker engine: a volume that is changed while it is mounted", ({ host }) => {
  const harness = useVolumes(host, [IMAGES.busybox], ["data"]);
  const { docker, engine, start, run, folder, sandbox, volumes, orgId, root } = harness;
  const hostId = sandbox([]).volumes[""]?.volumeId ?? "";

  /** Turns `a` of a volume from a directory into links that lead elsewhere, and back, until it is stopped. */
  function turning(volume: string, secret: string) {
    const [a, aside] = [join(volume, "a"), join(volume, "aside")];
    const targets = [
      "/other",
      secret,
      "../other",
      "/",
      "/other",
      `../../..${secret}`,
      "/proc/self/root",
    ];
    let on = true;
    const turned = (async () => {
      for (let i = 0; on; i += 1) {
        // For ever different times, so that each moment of a start is met.
        await sleep(i % 23);
        await rename(a, aside);
        await symlink(targets[i % targets.length] ?? "", a);
        await sleep(i % 7);
        await rm(a);
        await rename(aside, a);
      }
    })();
    return async () => {
      on = false;
      await turned;
    };
  }

  async function prepared() {
    const volume = await folder("");
    const secret = join(root, "secret");
    await rm(join(volume, "a"), { recursive: true, force: true });
    await mkdir(join(volume, "a", "b"), { recursive: true });
    await writeFile(join(volume, "a", "b", "inside"), "");
    await mkdir(join(secret, "b"), { recursive: true });
    await writeFile(join(secret, "b", "outside"), "");
    return { volume, secret };
  }

  it("never lets a sandbox start with anything else", async () => {
    const { volume, secret } = await prepared();
    const stop = turning(volume, secret);
    try {
      for (let i = 0; i < 12; i += 1) {
        const mounts = [bind("a/b", "/b"), named("data", "/d"), bind("", "/h"), tmpfs("/h/a/t")];
        const one = sandbox(mounts);
        const up = await start(one).catch((error: unknown) => error);
        if (up instanceof Error) expect(up).toBeInstanceOf(EngineFailure);
        else expect(await run(one, "ls", "-A", "/b")).toBe("inside");
        await engine.remove(one.sandboxId);
      }
    } finally {
      await stop();
    }
    expect(await readdir(secret, { recursive: true })).toEqual(["b", "b/outside"]);
  }, 60_000);

  it("never leads a mount, or a place made for one, anywhere else", async () => {
    const { volume, secret } = await prepared();
    // Each try has a stage of its own; all are the same volume.
    const stages = Array.from({ length: TRIES }, () => uuid());
    const container = await docker.createContainer({
      Image: IMAGES.busybox.name,
      Entrypoint: ["/bin/sleep", "100000"],
      HostConfig: { NetworkMode: "none", Mounts: stages.map((id) => stagedMount(id, volume)) },
    });
    await container.start();
    const { Pid } = (await container.inspect()).State;
    const first = await HostProcess.of(Pid);
    const inside = (path: string) => readdir(`/proc/${Pid}/root${path}`);
    // Of the sandbox's own disk, but not what it asked for.
    await mkdir(`/proc/${Pid}/root/other/b/wrong`, { recursive: true });
    await mkdir(`/proc/${Pid}/root/other/t`);
    const before = await Promise.all(["/", "/etc", "/dev"].map(inside));
    try {
      const stop = turning(volume, secret);
      try {
        for (const [i, volumeId] of stages.slice(1).entries()) {
          const failed = await attempt(first, volumeId, `/made/${i}`).then(
            () => undefined,
            (error: unknown) => error,
          );
          if (failed) expect(failed).toBeInstanceOf(EngineFailure);
          else expect(await inside(`/made/${i}/b`)).toEqual(["inside"]);
        }
      } finally {
        await stop();
      }
      await attempt(first, stages[0] ?? "", "/made/last");
      expect(await inside("/made/last/b")).toEqual(["inside"]);
      const [top = [], ...others] = await Promise.all(["/", "/etc", "/dev"].map(inside));
      expect([top.filter((name) => name !== "made"), ...others]).toEqual(before);
    } finally {
      await first.close();
      await container.remove({ force: true });
    }
    expect(await readdir(secret, { recursive: true })).toEqual(["b", "b/outside"]);
  }, 120_000);

  async function attempt(first: HostProcess, volumeId: string, top: string): Promise<void> {
    const planned = (id: string) => [
      { ...ofVolume(id), label: "b", guest: `${top}/b`, path: "a/b" },
      { ...ofVolume(id), label: "v", guest: `${top}/v`, path: "" },
    ];
    const [located, plan] = [planned(hostId), planned(volumeId)];
    const sources = await locateSources(volumes, orgId, located);
    const asLocated = (mount: VolumeMount) => located[plan.indexOf(mount)] ?? mount;
    const scratch = { kind: "tmpfs" as const, flags: NO_FLAGS, sizeMib: 1 };
    try {
      const work = {
        plan: [...plan, { ...scratch, label: "t", guest: `${top}/v/a/t` }],
        sources: {
          ...sources,
          of: (mount: VolumeMount) => sources.of(asLocated(mount)),
          root: () => sources.root(hostId),
        },
      };
      await makeMounts(first, work, "/");
    } finally {
      await sources.close();
    }
  }
});

function ofVolume(volumeId: string) {
  return { kind: "volume" as const, volumeId, field: "f", flags: NO_FLAGS };
}
