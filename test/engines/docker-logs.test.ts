import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import type { DockerContext } from "../../services/orchestrator/engines/docker/context.ts";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { readLogs } from "../../services/orchestrator/engines/docker/logs/read-logs.ts";
import {
  type Allocation,
  type Engine,
  EngineUnavailable,
  type LogChunk,
} from "../../services/orchestrator/engines/engine.ts";
import { type Cuttable, cuttable } from "../support/cuttable.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";
import { BEGINNING, positionAfter, readAll, texts } from "./logs-conformance.ts";

describeWithDocker("docker engine: logs", ({ host }) => {
  const { engine, start, docker, installationId, run } = useDocker(host, [
    IMAGES.busybox,
    IMAGES.noShell,
  ]);
  let socket: Cuttable;
  let far: Engine;
  beforeAll(async () => {
    socket = await cuttable(host);
    far = createDockerEngine({ installationId, docker: { host: socket.host }, log: SILENT });
  });
  beforeEach(() => socket.restore());
  afterAll(async () => {
    await far.close();
    await socket.close();
  });

  const script = (text: string) => allocate({ runtime: { cmd: ["sh", "-c", text] } });
  const runOf = ({ sandboxId, generation }: Allocation) => ({
    sandboxId,
    generation,
    admittedAt: new Date(0),
  });
  const said = async (allocation: Allocation, text: string) =>
    expect
      .poll(async () => (await run(allocation, "cat", "/said")).includes(text), { timeout: 20_000 })
      .toBe(true);

  test("a line longer than Docker's pieces comes whole, and can be resumed inside", async () => {
    // Three bytes a character, so that no piece of 16 KiB ends with one.
    const long = script("printf '⏳%.0s' $(seq 15000); echo; echo end; echo done >/said");
    await start(long);
    await said(long, "done");
    await engine.stop(long, 0);
    const all = await readAll(engine, long);
    expect(all.length).toBeGreaterThan(3);
    expect(texts(all).stdout === `${"⏳".repeat(15_000)}\nend\n`).toBe(true);
    for (let count = 0; count <= all.length; count += 1)
      expect(await readAll(engine, long, positionAfter(all, count))).toEqual(all.slice(count));
  }, 60_000);

  test("what the supervisor says of the workload's end is the system's", async () => {
    const allocation = script(
      "echo 'sandgate: the workload ended with exit code 7' >&2; echo own >&2; echo done >/said",
    );
    await start(allocation);
    await said(allocation, "done");
    await engine.stop(allocation, 0);
    const entries = (await readAll(engine, allocation)).map(({ source, text }) => [source, text]);
    expect(entries.slice(0, 2)).toEqual([
      ["system", "sandgate: the workload ended with exit code 7\n"],
      ["stderr", "own\n"],
    ]);
  });

  test("a machine that ends by itself ends its followers, with its last lines", async () => {
    const direct = allocate({
      image: IMAGES.noShell.name,
      runtime: { cmd: ["no-number"] },
    });
    await start(direct);
    expect(texts(await readAll(engine, direct)).stderr).toContain("no-number");
  });

  test("a daemon that goes away and comes back costs a follower nothing", async () => {
    const count = 300;
    const writer = script(
      `i=0; while [ $i -lt ${count} ]; do i=$((i+1)); echo $i; echo e$i >&2; usleep 5000; done; echo done >/said`,
    );
    await start(writer);
    const seen: LogChunk[] = [];
    const following = (async () => {
      for await (const chunk of await far.logs(runOf(writer), BEGINNING, UNHURRIED))
        seen.push(chunk);
    })();
    for (const enough of [20, 150, 280]) {
      await expect.poll(() => seen.length, { timeout: 20_000 }).toBeGreaterThan(enough);
      socket.cut();
      const before = seen.length;
      await expect.poll(() => linesOf(writer)).toBeGreaterThan(before + 10);
      expect(seen.length).toBeLessThan(await linesOf(writer));
      socket.restore();
    }
    await said(writer, "done");
    await engine.stop(writer, 0);
    await following;
    const numbers = Array.from({ length: count }, (_, i) => i + 1);
    expect(texts(seen)).toMatchObject({
      stdout: numbers.map((i) => `${i}\n`).join(""),
      stderr: expect.stringMatching(new RegExp(`^${numbers.map((i) => `e${i}\n`).join("")}`)),
    });
  }, 60_000);

  /** Lines that there are by now. */
  async function linesOf({ sandboxId, generation }: Allocation): Promise<number> {
    const container = docker.getContainer(`sbx-${sandboxId}-${generation}`);
    const bytes = await container.logs({ stdout: true, stderr: true });
    return bytes.toString("latin1").split("\n").length - 1;
  }

  test("a daemon that stays away is EngineUnavailable, at once for who begins to read", async () => {
    const idle = script("echo here; exec sleep 1000");
    await start(idle);
    // Of the engine's context it is only these two that are used.
    const ctx = { docker: connectDocker({ host: socket.host }), installationId } as DockerContext;
    const reading = (await readLogs(ctx, runOf(idle), BEGINNING, UNHURRIED, 300))[
      Symbol.asyncIterator
    ]();
    expect(await reading.next()).toMatchObject({ value: { text: "here\n" } });
    const next = reading.next();
    socket.cut();
    await expect(next).rejects.toBeInstanceOf(EngineUnavailable);
    await expect(far.logs(runOf(idle), BEGINNING, UNHURRIED)).rejects.toBeInstanceOf(
      EngineUnavailable,
    );
  });

  test("a log that is rotated while it is read comes whole, and once", async () => {
    const lines = 115_000;
    // More than two of the daemon's files, all of them kept.
    const rotating = script(
      `seq ${lines} | while read -r i; do echo "$i ${"x".repeat(200)}"; done`,
    );
    await start(rotating);
    const enough = new AbortController();
    let last = 0;
    const strays: string[] = [];
    for await (const { text, source } of await engine.logs(
      runOf(rotating),
      BEGINNING,
      enough.signal,
    )) {
      if (source === "system") continue;
      const number = Number.parseInt(text, 10);
      if (number !== last + 1) strays.push(`${number} after ${last}`);
      last = number;
      if (last === lines) enough.abort();
    }
    expect({ last, strays }).toEqual({ last: lines, strays: [] });
  }, 120_000);

  test("a reader that does not read holds the daemon up, not the memory", async () => {
    const flood = script(
      "yes 0123456789012345678901234567890123456789 | head -c 20000000; echo done >/said",
    );
    await start(flood);
    await said(flood, "done");
    const reading = (await far.logs(runOf(flood), BEGINNING, UNHURRIED))[Symbol.asyncIterator]();
    await reading.next();
    const before = socket.bytes;
    // Settled: what sockets and streams hold between here and the daemon is all there is.
    let last = -1;
    await expect
      .poll(
        () => {
          const same = socket.bytes === last;
          last = socket.bytes;
          return same;
        },
        { interval: 300 },
      )
      .toBe(true);
    expect(socket.bytes - before).toBeLessThan(4_000_000);
    await reading.return?.();
  }, 60_000);
});
