import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { pull } from "../../services/orchestrator/engines/docker/images/pull.ts";
import { parseReference } from "../../services/orchestrator/engines/docker/images/reference.ts";
import { EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { UNHURRIED } from "./allocations.ts";

const REFERENCE = parseReference("registry.test/team/app:1");
const PATIENT = { answerMs: 10_000, stallMs: 10_000 };

/** A daemon that says what a real one cannot be brought to say in a test. */
describe("what a daemon says of a pull", () => {
  let folder: string;
  let server: Server;
  let answer: { lines: string[]; ends: boolean };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandgate-pull-"));
    server = createServer((request, response) => {
      request.resume();
      response.writeHead(200);
      for (const line of answer.lines) response.write(`${line}\r\n`);
      if (answer.ends) response.end();
    });
    await new Promise<void>((up) => server.listen(join(folder, "docker.sock"), up));
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  });

  const pulled = (patience = PATIENT, signal = UNHURRIED) => {
    const docker = connectDocker({ host: `unix://${folder}/docker.sock` });
    return pull(docker, REFERENCE, { username: "u", password: "p" }, patience, signal);
  };
  const says = (...lines: object[]) => lines.map((line) => JSON.stringify(line));

  it("success is an end without an error", async () => {
    answer = { lines: says({ status: "Pulling" }, { status: "Done" }), ends: true };
    await expect(pulled()).resolves.toBeUndefined();
  });

  it.each([
    [
      "failed to register layer: write /x: no space left on device",
      "no space is left on the host for image 'registry.test/team/app:1'",
    ],
    [
      "toomanyrequests: You have reached your pull rate limit.",
      "registry registry.test allows no more pulls for now",
    ],
    [
      "no matching manifest for linux/amd64 in the manifest list entries",
      "image 'registry.test/team/app:1' has no variant for this host's platform",
    ],
    [
      "denied: requested access to the resource is denied",
      "image 'registry.test/team/app:1' does not exist, or access to it was denied",
    ],
    [
      'Get "https://registry.test/v2/": x509: certificate signed by unknown authority',
      "registry registry.test has no certificate that this host trusts",
    ],
    [
      'Get "https://registry.test/v2/": net/http: request canceled (Client.Timeout exceeded)',
      "registry registry.test cannot be reached",
    ],
    ["something new", "image 'registry.test/team/app:1' could not be pulled: something new"],
  ])("%s", async (error, message) => {
    answer = { lines: says({ status: "Pulling" }, { error, errorDetail: {} }), ends: true };
    await expect(pulled()).rejects.toThrow(new EngineFailure(message));
  });

  it("nothing, or nothing more, is a registry that stopped answering", async () => {
    const message = "registry registry.test stopped answering";
    answer = { lines: [], ends: false };
    await expect(pulled({ answerMs: 50, stallMs: 10_000 })).rejects.toThrow(message);
    answer = { lines: says({ status: "Pulling" }), ends: false };
    await expect(pulled({ answerMs: 10_000, stallMs: 50 })).rejects.toThrow(message);
  });

  it("nothing matters once nobody wants it", async () => {
    answer = { lines: says({ status: "Pulling" }), ends: false };
    const unwanted = new AbortController();
    const pulling = pulled(PATIENT, unwanted.signal);
    unwanted.abort(new Error("nobody wants it"));
    await expect(pulling).rejects.toThrow("nobody wants it");
  });
});
