import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, credentials, Metadata, type ServiceDefinition, status } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { allEvents, type ServerEvent, serverEvents } from "../support/events.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program } from "../support/program.ts";
import { installSdk } from "../support/sdk.ts";
import { inBothShapes } from "../support/shapes.ts";

// Output of both streams, text beyond ASCII, a line of several pieces, and an end of line that is missing.
const WORKLOAD = `echo begin; echo trouble >&2; echo 'grüße ⏳'; printf '%020000d\\n' 0; echo more >&2; printf tail`;
// The daemon keeps a line to itself until it is finished, or the machine has ended.
const LIVE = `begin\ngrüße ⏳\n${"0".repeat(20_000)}\n`;
const STDOUT = `${LIVE}tail`;
const STDERR = "trouble\nmore\n";

describeWithDocker("logs of the whole program on Docker", ({ host }) => {
  inBothShapes("logs", (startProgram) => {
    let program: Program;
    let id: string;

    beforeAll(async () => {
      await loadImage(connectDocker({ host }), IMAGES.busybox);
      program = await startProgram({
        ENGINE: "docker",
        DOCKER_HOST: host,
        STOP_GRACE_SECS: "1",
      });
      id = await started("writer", WORKLOAD);
    });
    afterAll(() => program.close());

    async function started(name: string, script: string): Promise<string> {
      const answer = await program.api("POST", "/v1/sandboxes?start=true&wait_for=running", {
        ...image(IMAGES.busybox.name),
        name,
        resources: { vcpus: 1, memory_mib: 64 },
        runtime: { cmd: ["sh", "-c", script] },
      });
      expect(answer.body).toMatchObject({ status: "running" });
      return answer.body.id;
    }

    const textOf = (events: readonly ServerEvent[], source: string) =>
      events
        .filter(({ data }) => data.source === source)
        .map(({ data }) => data.text)
        .join("");
    const logs = (events: readonly ServerEvent[]) => events.filter(({ event }) => event === "log");
    const stop = (sandboxId: string) => program.api("POST", `/v1/sandboxes/${sandboxId}/stop`, {});

    test("a reader gets what the workload writes, then the end of the run", async () => {
      const seen: ServerEvent[] = [];
      for await (const event of serverEvents(program, `/v1/sandboxes/${id}/logs`)) {
        seen.push(event);
        const whole = textOf(seen, "stdout") === LIVE && textOf(seen, "stderr") === STDERR;
        if (whole && event.event === "log") await stop(id);
      }
      expect(seen.at(-1)).toEqual({ id: undefined, event: "end", data: {} });
      expect(textOf(seen, "stdout")).toBe(STDOUT);
      expect(textOf(seen, "stderr")).toBe(STDERR);
      for (const { data } of logs(seen)) expect(Date.parse(data.ts)).toBeGreaterThan(0);
    }, 60_000);

    test("a reader that comes back gets exactly the rest, wherever it was cut off", async () => {
      const path = `/v1/sandboxes/${id}/logs?sources=all`;
      const whole = await allEvents(program, path);
      expect(logs(whole).length).toBeGreaterThan(8);
      expect(textOf(whole, "stdout")).toBe(STDOUT);
      const system = whole.filter(({ data }) => data.source === "system");
      expect(system.map(({ data }) => data.text)).toEqual(
        expect.arrayContaining(["sandgate: the machine is up\n", "sandgate: the run ended\n"]),
      );
      for (const [i, event] of logs(whole).entries())
        expect(await allEvents(program, path, { "last-event-id": event.id ?? "" })).toEqual(
          whole.slice(i + 1),
        );
    }, 60_000);

    test("the next run begins anew, for who comes back from the one before too", async () => {
      const [first] = await allEvents(program, `/v1/sandboxes/${id}/logs`);
      await program.api("POST", `/v1/sandboxes/${id}/start?wait_for=running`, {});
      const headers = { "last-event-id": first?.id ?? "" };
      const seen: ServerEvent[] = [];
      for await (const event of serverEvents(program, `/v1/sandboxes/${id}/logs`, headers)) {
        seen.push(event);
        if (textOf(seen, "stdout") === LIVE && textOf(seen, "stderr") === STDERR) break;
      }
      await stop(id);
      expect(textOf(seen, "stdout")).toBe(LIVE);
    }, 60_000);

    test("another organization's sandbox is not there", async () => {
      const other = await program.addOrganization("other-logs");
      expect(await other.api("GET", `/v1/sandboxes/${id}/logs`)).toMatchObject({
        status: 404,
        body: { error: { code: "sandbox_not_found" } },
      });
    });

    test("the same over gRPC, with the proto files alone", async () => {
      const definition = await load("orchestrator/v1/orchestrator_service.proto", {
        includeDirs: ["proto", "third_party"],
        keepCase: true,
        enums: String,
        longs: String,
        oneofs: true,
      });
      // Of what the loader returns, names of services stand for services.
      const methods = definition["orchestrator.v1.OrchestratorService"] as ServiceDefinition;
      const client = new Client(program.rpc.orchestrator, credentials.createInsecure());
      const token = await readFile(join(program.dataDir, "service-token"), "utf8");
      const read = async (organization: string) => {
        const metadata = new Metadata();
        metadata.set("authorization", `Bearer ${token.trim()}`);
        metadata.set("sandgate-organization-id", organization);
        const method = methods.ReadLogs;
        if (!method) throw new Error("no such method");
        const stream = client.makeServerStreamRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          { sandbox_id: id },
          metadata,
        );
        const messages = [];
        for await (const message of stream) messages.push(message);
        return messages;
      };
      const { body } = await program.api("GET", "/v1/me/org");
      const messages = await read(body.id);
      expect(messages.at(0)).toMatchObject({ event: "opened" });
      expect(messages.at(-1)).toMatchObject({ event: "ended" });
      const events = logs(await allEvents(program, `/v1/sandboxes/${id}/logs`));
      expect(messages.slice(1, -1).map(({ entry }) => entry.cursor.toString("base64"))).toEqual(
        events.map((event) => event.id),
      );
      expect(
        messages
          .slice(1, -1)
          .map(({ entry }) => entry.text)
          .join(""),
      ).toBe(events.map(({ data }) => data.text).join(""));
      await expect(read("019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44")).rejects.toMatchObject({
        code: status.NOT_FOUND,
      });
      client.close();
    });

    test("the official TypeScript SDK follows it", async () => {
      const folder = await installSdk();
      const sandboxId = await started("from-sdk-logs", WORKLOAD);
      const file = join(folder, `logs-${process.pid}.mjs`);
      await writeFile(
        file,
        `import { Sandbox } from "microsandbox";
      const sandbox = await Sandbox.get("from-sdk-logs");
      const seen = { stdout: "", stderr: "" };
      for await (const entry of await sandbox.logStream({ follow: true })) {
        seen[entry.source] += entry.text();
        if (seen.stdout.endsWith("000\\n") && seen.stderr.endsWith("more\\n")) break;
      }
      console.log(JSON.stringify(seen));
      process.exit(0);`,
      );
      const { stdout } = await promisify(execFile)(process.execPath, [file], {
        env: {
          ...process.env,
          MSB_BACKEND: "cloud",
          MSB_API_URL: program.url,
          MSB_API_KEY: program.apiKey,
        },
        timeout: 60_000,
      });
      expect(JSON.parse(stdout)).toEqual({ stdout: LIVE, stderr: STDERR });
      await stop(sandboxId);
    }, 120_000);
  });
});
