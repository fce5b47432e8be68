import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { jsonLines } from "../../services/orchestrator/engines/docker/json-lines.ts";
import { instanceOf, outputFrom } from "../../services/orchestrator/engines/docker/machines.ts";
import { tarHead } from "../../services/orchestrator/engines/docker/tar-head.ts";

describe("a container's state", () => {
  const name = { sandboxId: "some", generation: 2, after: null };
  const startedAt = new Date("2026-11-21T08:33:55.603Z");
  const endedAt = new Date("2026-11-21T08:34:00.100Z");
  const state = (changes: object) => ({
    Status: "exited",
    Running: false,
    Paused: false,
    Restarting: false,
    OOMKilled: false,
    Dead: false,
    Pid: 0,
    ExitCode: 0,
    Error: "",
    StartedAt: "2026-11-21T08:33:55.603163272Z",
    FinishedAt: "2026-11-21T08:34:00.100999999Z",
    ...changes,
  });

  it("that never began is created, whatever a start that failed left behind", () => {
    const never = "0001-01-01T00:00:00Z";
    const created = state({
      Status: "created",
      ExitCode: 127,
      StartedAt: never,
      FinishedAt: never,
    });
    const nothing = {
      startedAt: null,
      endedAt: null,
      exitCode: null,
      outOfMemory: false,
      workloadEndedAt: null,
    };
    expect(instanceOf(name, created)).toMatchObject({ state: "created", ...nothing });
    const renamed = { ...name, after: startedAt.getTime() };
    expect(instanceOf(renamed, state({}))).toMatchObject({ state: "created", ...nothing });
  });

  it("tells from when on its output is its run's, though the first line may be older than the start", () => {
    const StartedAt = "2026-11-21T08:34:00.500Z";
    const again = { FinishedAt: "2026-11-21T08:34:00.100Z" };
    expect(outputFrom(state({ StartedAt, ...again }))).toEqual(
      new Date("2026-11-21T08:34:00.300Z"),
    );
    const never = { FinishedAt: "0001-01-01T00:00:00Z" };
    expect(outputFrom(state({ StartedAt, ...never }))).toEqual(new Date(0));
    expect(outputFrom(state({}))).toEqual(startedAt);
  });

  it.each(["running", "paused", "restarting"])("%s is running", (Status) => {
    expect(instanceOf(name, state({ Status }))).toMatchObject({
      state: "running",
      startedAt,
      endedAt: null,
      exitCode: null,
    });
  });

  it.each(["exited", "dead", "removing"])("%s is ended", (Status) => {
    expect(instanceOf(name, state({ Status, ExitCode: 3 }))).toMatchObject({
      state: "ended",
      startedAt,
      endedAt,
      exitCode: 3,
    });
  });

  it("is out of memory when the machine itself was killed for it", () => {
    const outOfMemory = (changes: object) =>
      instanceOf(name, state({ OOMKilled: true, ...changes })).outOfMemory;
    expect(outOfMemory({ ExitCode: 137 })).toBe(true);
    expect(outOfMemory({ ExitCode: 143 })).toBe(false);
    expect(outOfMemory({ Status: "running", ExitCode: 0 })).toBe(false);
  });
});

describe("what the daemon streams", () => {
  it("JSON lines come apart wherever the chunks end", async () => {
    const text = '{"a":"é"}\r\n\n{"b":2}\n{"c":3}';
    const bytes = [...Buffer.from(text)].map((byte) => Buffer.from([byte]));
    const seen = await Array.fromAsync(jsonLines(Readable.from(bytes, { objectMode: false })));
    expect(seen).toEqual([{ a: "é" }, { b: 2 }, { c: 3 }]);
  });

  it.each([
    ["a short name", "file", "#!/bin/sh\n"],
    ["a name that needs an extended header", `${"long".repeat(60)}`, "#!/bin/sh\n"],
    ["nothing in it", "empty", ""],
  ])("the head of a tar's file with %s", async (_, file, content) => {
    const folder = await mkdtemp(join(tmpdir(), "sandgate-tar-"));
    await writeFile(join(folder, file), content);
    const options = { encoding: "buffer", maxBuffer: 1 << 20 } as const;
    const run = promisify(execFile);
    const tar = ["--format=pax", "-C", folder, "-cf", "-", file];
    const { stdout } = await run("tar", tar, options);
    const pieces = Readable.from([stdout.subarray(0, 700), stdout.subarray(700)]);
    expect(String(await tarHead(pieces))).toBe(content);
    await rm(folder, { recursive: true });
  });
});
