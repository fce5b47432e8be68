import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DockerError } from "../../services/orchestrator/engines/docker/call.ts";
import { probeDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";
import { allocate, UNHURRIED } from "./allocations.ts";
import { SILENT } from "./docker-harness.ts";

describe("docker engine without its daemon", () => {
  let folder: string;
  let socket: string;
  let server: Server | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandgate-absent-"));
    socket = join(folder, "docker.sock");
  });
  afterEach(async () => {
    server?.close();
    server = undefined;
    await rm(folder, { recursive: true });
  });

  const listen = async (answer: string | undefined) => {
    server = createServer((connection) => {
      connection.on("error", () => undefined);
      if (answer !== undefined) connection.once("data", () => connection.end(answer));
    }).listen(socket);
    await new Promise((up) => server?.once("listening", up));
  };
  const engineAt = (host: string) =>
    createDockerEngine({ installationId: "test", docker: { host }, log: SILENT });

  it("every verb is EngineUnavailable", async () => {
    const engine = engineAt(`unix://${socket}`);
    const answers = [
      engine.capacity(),
      engine.list(),
      engine.stop({ sandboxId: "some", generation: 1 }, 0),
      engine.remove("some"),
      engine.ensureRunning(allocate(), UNHURRIED),
      engine.watch(UNHURRIED)[Symbol.asyncIterator]().next(),
    ];
    for (const answer of answers) await expect(answer).rejects.toBeInstanceOf(EngineUnavailable);
  });

  it("an answer that makes no sense is EngineUnavailable, not a failure of the sandbox", async () => {
    const body = '{"message":"the disk is on fire"}';
    await listen(`HTTP/1.1 500 Error\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const engine = engineAt(`unix://${socket}`);
    const failed = engine.ensureRunning(allocate(), UNHURRIED);
    await expect(failed).rejects.toBeInstanceOf(EngineUnavailable);
    await expect(failed).rejects.toMatchObject({
      message: "Docker answered 500: the disk is on fire",
      cause: expect.any(DockerError),
    });
  });

  it("a daemon that says nothing holds nobody who no longer wants the answer", async () => {
    await listen(undefined);
    const engine = engineAt(`unix://${socket}`);
    const unwanted = new AbortController();
    const starting = engine.ensureRunning(allocate(), unwanted.signal);
    unwanted.abort(new Error("too late"));
    await expect(starting).rejects.toThrow("too late");
  });

  it("a probe says in a sentence what is wrong", async () => {
    expect(await probeDocker({ host: `unix://${socket}` })).toEqual({
      ok: false,
      why: `no Docker at unix://${socket}: there is no such socket`,
    });
    expect(await probeDocker({ host: "tcp://127.0.0.1:1" })).toEqual({
      ok: false,
      why: "no Docker at tcp://127.0.0.1:1: nothing listens there",
    });
    expect(await probeDocker({ host: "ssh://somewhere" })).toMatchObject({
      ok: false,
      why: expect.stringContaining("is neither unix://, tcp://, nor http(s)://"),
    });
    await listen(undefined);
    expect(await probeDocker({ host: `unix://${socket}` })).toMatchObject({
      ok: false,
      why: expect.stringContaining("did not answer within 2 s"),
    });
  });
});
