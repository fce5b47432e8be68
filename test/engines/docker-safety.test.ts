import { expect, it } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import type { Allocation } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate, nextStart, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: after a crash, and beside others", ({ host }) => {
  const { docker, engine, installationId, start, container } = useDocker(host, [IMAGES.busybox]);
  const anew = () => createDockerEngine({ installationId, docker: { host }, log: SILENT });
  const stateOf = async ({ sandboxId }: Allocation) =>
    (await anew().list()).find((instance) => instance.sandboxId === sandboxId);

  it("starts what was made and not started", async () => {
    const sandbox = allocate();
    await start(sandbox);
    const { Image, Config, HostConfig } = await container(sandbox).inspect();
    await engine.remove(sandbox.sandboxId);
    const name = `sbx-${sandbox.sandboxId}-1`;
    await docker.createContainer({ ...Config, Image, HostConfig, name });
    expect(await stateOf(sandbox)).toMatchObject({ state: "created", startedAt: null });
    expect(await anew().ensureRunning(sandbox, UNHURRIED)).toMatchObject({ state: "running" });
  });

  it("makes one network, however many start at once, and repairs one that was made twice", async () => {
    const filters = { name: [`sandgate-${installationId}`] };
    const networks = () => docker.listNetworks({ filters });
    const online = () => allocate({ network: { enabled: true } });
    for (const { Id } of await networks()) await docker.getNetwork(Id).remove();
    const engines = [engine, anew(), anew()];
    const first = engines
      .flatMap((each) => [each, each])
      .map((each) => {
        const sandbox = online();
        return each.ensureRunning(sandbox, UNHURRIED).then(() => sandbox);
      });
    const started = await Promise.allSettled(first);
    // Of engines apart from each other, one may have to try again.
    expect(started.filter(({ status }) => status === "fulfilled")).not.toEqual([]);
    const Name = `sandgate-${installationId}`;
    await docker.createNetwork({ Name, CheckDuplicate: false, Driver: "bridge" });
    expect((await networks()).length).toBeGreaterThan(1);
    expect(await start(online())).toMatchObject({ state: "running" });
    expect(await networks()).toHaveLength(1);
    expect((await networks())[0]?.Labels).toEqual({ "dev.sandgate.installation": installationId });
  });

  it("starts what was renamed for a restart and not started", async () => {
    const sandbox = allocate();
    const { startedAt } = await start(sandbox);
    await engine.stop(sandbox, 0);
    await container(sandbox).rename({ name: markedName(sandbox, startedAt) });
    const created = { generation: 2, state: "created", startedAt: null, endedAt: null };
    expect(await engine.stop(sandbox, 0)).toMatchObject(created);
    expect(await stateOf(sandbox)).toMatchObject(created);
    const again = nextStart(sandbox);
    expect(await anew().ensureRunning(again, UNHURRIED)).toMatchObject({ state: "running" });
    expect((await container(again).inspect()).State.Running).toBe(true);
  });

  it("does not run twice what was started and had not lost the mark of its restart", async () => {
    for (const ended of [false, true]) {
      const sandbox = allocate();
      const { startedAt } = await start(sandbox);
      const machine = docker.getContainer((await container(sandbox).inspect()).Id);
      await engine.stop(sandbox, 0);
      await machine.rename({ name: markedName(sandbox, startedAt) });
      await machine.start();
      if (ended) await machine.stop({ t: 0 });
      const state = ended ? "ended" : "running";
      const { State } = await machine.inspect();
      const before = await stateOf(sandbox);
      expect(before).toMatchObject({ generation: 2, state });
      expect(await start(nextStart(sandbox))).toEqual(before);
      expect((await container(nextStart(sandbox)).inspect()).State.StartedAt).toBe(State.StartedAt);
    }
  });

  it("never touches a container without its label, whatever it is called", async () => {
    const sandbox = allocate();
    const name = `sbx-${sandbox.sandboxId}-1`;
    const Labels = {
      "dev.sandgate.installation": "another",
      "dev.sandgate.sandbox": sandbox.sandboxId,
    };
    const foreign = await docker.createContainer({
      name,
      Labels,
      Image: IMAGES.busybox.name,
      Cmd: ["sleep", "1000"],
    });
    try {
      await foreign.start();
      expect(await stateOf(sandbox)).toBeUndefined();
      expect(await engine.stop(sandbox, 0)).toBeUndefined();
      await engine.remove(sandbox.sandboxId);
      await expect(start(sandbox)).rejects.toThrow();
      expect((await foreign.inspect()).State.Running).toBe(true);
    } finally {
      await foreign.remove({ force: true });
    }
  });

  it("lists what is paused as running, and stops it", async () => {
    const sandbox = allocate();
    const up = await start(sandbox);
    await container(sandbox).pause();
    expect(await stateOf(sandbox)).toEqual(up);
    expect(await engine.stop(sandbox, 1_000)).toMatchObject({ state: "ended" });
  });

  it("removes anonymous volumes with the machine", async () => {
    const sandbox = allocate();
    await start(sandbox);
    const { Config, HostConfig } = await container(sandbox).inspect();
    await engine.remove(sandbox.sandboxId);
    const made = await docker.createContainer({
      ...Config,
      HostConfig,
      name: `sbx-${sandbox.sandboxId}-1`,
      Volumes: { "/data": {} },
    });
    const volume = (await made.inspect()).Mounts.find(({ Destination }) => Destination === "/data");
    await engine.remove(sandbox.sandboxId);
    await expect(docker.getVolume(volume?.Name ?? "").inspect()).rejects.toThrow("no such volume");
  });

  function markedName(sandbox: Allocation, startedAt: Date | null): string {
    return `sbx-${sandbox.sandboxId}-2-after-${startedAt?.getTime()}`;
  }
});
