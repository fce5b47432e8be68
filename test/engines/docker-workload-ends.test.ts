import pino from "pino";
import { expect, it } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import type { Allocation, Engine } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate, nextStart, type SpecChanges, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: when a workload ended", ({ host }) => {
  const { engine, installationId, start, run, said } = useDocker(host, [IMAGES.busybox]);
  const anew = () => createDockerEngine({ installationId, docker: { host }, log: SILENT });
  const timed = (script: string, rest: SpecChanges = {}) =>
    allocate({
      lifecycle: { idleTimeoutSecs: 60 },
      runtime: { cmd: ["sh", "-c", script] },
      ...rest,
    });
  const endOf = async ({ sandboxId }: Allocation, by: Engine = engine) =>
    (await by.list()).find((instance) => instance.sandboxId === sandboxId)?.workloadEndedAt;

  it("is known, with a hint, as soon as it is said, and to whoever comes later", async () => {
    const sandbox = timed(
      "until test -e /end; do sleep 0.05; done; printf 'no newline' >&2; exit 3",
    );
    const hints: string[] = [];
    const unwatched = new AbortController();
    const watching = (async () => {
      for await (const id of engine.watch(unwatched.signal)) hints.push(id);
    })();
    const { startedAt } = await start(sandbox);
    expect(await endOf(sandbox)).toBeNull();
    const before = hints.length;
    // Long enough for what comes of the start itself.
    await run(sandbox, "sleep", "0.2");
    await run(sandbox, "touch", "/end");
    await expect.poll(() => endOf(sandbox)).toBeInstanceOf(Date);
    await expect.poll(() => hints.slice(before)).toContain(sandbox.sandboxId);
    const endedAt = await endOf(sandbox);
    expect(endedAt?.getTime()).toBeGreaterThanOrEqual(startedAt?.getTime() ?? Infinity);
    expect(await start(sandbox)).toMatchObject({ state: "running", workloadEndedAt: endedAt });
    const later = anew();
    await expect.poll(() => endOf(sandbox, later)).toEqual(endedAt);
    expect(await later.ensureRunning(sandbox, UNHURRIED)).toMatchObject({
      workloadEndedAt: endedAt,
    });
    await later.close();
    unwatched.abort();
    await watching;
  });

  it("is each run's own", async () => {
    const sandbox = timed("test -e /second || exit 0; sleep 1000");
    await start(sandbox);
    await expect.poll(() => endOf(sandbox)).toBeInstanceOf(Date);
    await run(sandbox, "touch", "/second");
    await engine.stop(sandbox, 0);
    expect(await endOf(sandbox)).toBeNull();
    const again = nextStart(sandbox);
    expect(await start(again)).toMatchObject({ state: "running", workloadEndedAt: null });
    await run(again, "sleep", "0.3");
    expect(await endOf(again)).toBeNull();
  });

  it("is said once, after the last of its output, and not when it was stopped", async () => {
    const sandbox = timed("exit 7");
    await start(sandbox);
    const line = "sandgate: the workload ended with exit code 7";
    await expect.poll(() => said(sandbox)).toEqual([line]);
    await engine.stop(sandbox, 5_000);
    expect(await said(sandbox)).toEqual([line]);
    const stopped = timed("trap 'exit 9' TERM; while :; do sleep 0.1; done");
    await start(stopped);
    await run(stopped, "sleep", "0.3");
    await engine.stop(stopped, 20_000);
    expect(await said(stopped)).toEqual([]);
  });

  it("is not looked for where nobody needs to know", async () => {
    const untimed = timed("exit 0", { lifecycle: { idleTimeoutSecs: null } });
    await start(untimed);
    await expect.poll(() => said(untimed)).toHaveLength(1);
    await engine.list();
    await run(untimed, "sleep", "0.3");
    expect(await endOf(untimed)).toBeNull();
    const idle = timed("", { runtime: { cmd: null } });
    expect(await start(idle)).toMatchObject({ workloadEndedAt: null });
  });
});

describeWithDocker("docker engine: its log of a sandbox", ({ host }) => {
  const lines: { level: number; sandbox_id?: string; msg: string }[] = [];
  const log = pino({ level: "info" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const { installationId } = useDocker(host, [IMAGES.busybox]);

  it("is as detailed as its spec asks for, and holds no secret", async () => {
    const engine = createDockerEngine({ installationId, docker: { host }, log });
    const secret = "not for the log";
    const patches = [
      { kind: "text" as const, path: "/p", content: secret, mode: null, replace: false },
    ];
    const env = [{ key: "TOKEN", value: secret }];
    const messagesOf = async (logLevel: "error" | "debug" | null) => {
      const sandbox = allocate({ env, runtime: { logLevel } }, { patches });
      await engine.ensureRunning(sandbox, UNHURRIED);
      await engine.stop(sandbox, 0);
      await engine.remove(sandbox.sandboxId);
      return lines
        .filter(({ sandbox_id }) => sandbox_id === sandbox.sandboxId)
        .map(({ msg }) => msg);
    };
    const plain = [
      "the machine is up",
      "the machine is stopped",
      "the machine and its disk are removed",
    ];
    expect(await messagesOf(null)).toEqual(plain);
    expect(await messagesOf("error")).toEqual([]);
    expect(await messagesOf("debug")).toEqual([
      "the image is on the host",
      "the container is made",
      "patches and scripts are on its disk",
      ...plain,
    ]);
    expect(JSON.stringify(lines)).not.toContain(secret);
    await engine.close();
  });
});
