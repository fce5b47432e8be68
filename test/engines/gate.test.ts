import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { isStatic } from "../../services/orchestrator/engines/docker/gate/elf.ts";
import { gateFor } from "../../services/orchestrator/engines/docker/gate/gate-bytes.ts";
import { GATE, gated, ungated } from "../../services/orchestrator/engines/docker/gate/gated.ts";
import {
  becomes,
  HostProcess,
} from "../../services/orchestrator/engines/docker/gate/held-process.ts";
import { openGate } from "../../services/orchestrator/engines/docker/gate/open-gate.ts";
import { allocate } from "./allocations.ts";

const ASSEMBLERS = { amd64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };
const SOURCES = join(import.meta.dirname, "../../services/orchestrator/engines/docker/gate");
const own = gateFor(process.arch === "x64" ? "amd64" : process.arch);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-gate-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe.each(Object.entries(ASSEMBLERS))("the gate for %s", (architecture, target) => {
  const has = isThere(`${target}-as`);
  it.skipIf(!has)(`is its source, assembled${has ? "" : " [skipped: no assembler]"}`, async () => {
    const [object, binary] = [join(folder, `${target}.o`), join(folder, target)];
    execFileSync(`${target}-as`, [join(SOURCES, `gate-${architecture}.s`), "-o", object]);
    execFileSync(`${target}-objcopy`, ["-O", "binary", "-j", ".text", object, binary]);
    expect(gateFor(architecture)).toEqual(await readFile(binary));
  });

  it("needs no loader", () => {
    expect(isStatic(gateFor(architecture) ?? Buffer.alloc(0))).toBe(true);
  });
});

describe.skipIf(!own || process.platform !== "linux")("the gate of this machine", () => {
  const gate = own ?? Buffer.alloc(0);

  it("is opened for a machine that was found before it came there", async () => {
    const file = join(folder, "found");
    await writeFile(file, gate, { mode: 0o755 });
    // What starts a container is its first process for a moment, and on a busy host for longer.
    const child = spawn("sh", ["-c", `sleep 1; exec ${file} /bin/true`]);
    const ended = once(child, "exit");
    const State = { Pid: child.pid, StartedAt: new Date().toISOString() };
    const container = { Id: "/", State, Config: { Entrypoint: [GATE] } };
    const machine = { container, instance: { state: "running" } };
    const policies = { demanded: false, gate: async () => gate };
    await openGate({ policies } as never, machine as never, allocate(), "found");
    expect(await ended).toEqual([0, null]);
  });

  async function held(...args: string[]) {
    const file = join(folder, "gate");
    await writeFile(file, gate, { mode: 0o755 });
    const child = spawn(file, args, { env: { GREETING: "hello" } });
    const seen = await HostProcess.open(child.pid ?? 0);
    if (!seen) throw new Error("the gate is not there");
    expect(await becomes(() => seen.isHeldBy(gate), 10_000)).toBe(true);
    expect(await seen.isHeldBy(Buffer.concat([gate, gate]))).toBe(false);
    await seen.close();
    return { child, ended: once(child, "exit"), said: text(child.stdout) };
  }

  it.each([
    [
      "becomes the program, with its arguments and environment",
      ["/bin/sh", "-c", 'echo "$GREETING $0"', "world"],
      "SIGUSR1",
      "hello world\n",
      0,
    ],
    ["is not deceived by another signal", ["/bin/echo"], "SIGTERM", "", 143],
    ["says that the program is not there", ["/nonexistent"], "SIGUSR1", "", 127],
    ["says that it cannot be run", ["/etc/passwd"], "SIGUSR1", "", 126],
    ["ends where there is none", [], "SIGUSR1", "", 126],
  ] as const)("%s", async (_, args, signal, output, code) => {
    const { child, ended, said } = await held(...args);
    child.kill("SIGCONT");
    child.kill(signal);
    expect((await ended)[0]).toBe(code);
    expect(await said).toBe(output);
  });
});

test("a container behind the gate runs what it ran, from the gate's own place", () => {
  const options = { Entrypoint: ["/bin/sh", "-c", "x"], HostConfig: { Init: true, Memory: 5 } };
  const behind = gated(options, "here");
  expect(behind.Entrypoint).toEqual([
    "/dev/.sandgate/gate",
    "/dev/.sandgate/init",
    "--",
    ...options.Entrypoint,
  ]);
  expect(behind.HostConfig).toMatchObject({
    Init: false,
    Memory: 5,
    Mounts: [{ Source: "sandgate-here-gate", ReadOnly: true, VolumeOptions: { NoCopy: true } }],
  });
  expect(ungated([behind.Entrypoint ?? []].flat())).toEqual(options.Entrypoint);
  const alone = gated({ Entrypoint: ["/sbin/init"], HostConfig: {} }, "here");
  expect(ungated([alone.Entrypoint ?? []].flat())).toEqual(["/sbin/init"]);
  expect(ungated(["/bin/sh"])).toEqual(["/bin/sh"]);
  expect(() => gated({ Entrypoint: ["sleep"], HostConfig: {} }, "here")).toThrow(/absolute/);
});

function isThere(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
