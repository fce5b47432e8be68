import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceDefinition, status } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, test } from "vitest";
import { image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

inBothShapes("services for gRPC clients", (startProgram) => {
  let program: Program;
  let client: Client;
  let fileClient: Client;
  let methods: ServiceDefinition;
  let fileMethods: ServiceDefinition;
  let metadata: Metadata;

  beforeAll(async () => {
    program = await startProgram();
    client = new Client(program.rpc.sandbox, credentials.createInsecure());
    fileClient = new Client(program.rpc.orchestrator, credentials.createInsecure());
    const files = ["sandbox/v1/sandbox_service.proto", "sandbox/v1/volume_service.proto"];
    const definition = await load([...files, "orchestrator/v1/volume_file_service.proto"], {
      includeDirs: ["proto", "third_party"],
      keepCase: true,
      enums: String,
      longs: String,
      oneofs: true,
    });
    // Of what the loader returns, names of services stand for services.
    const service = (name: string) => definition[name] as ServiceDefinition;
    methods = { ...service("sandbox.v1.SandboxService"), ...service("sandbox.v1.VolumeService") };
    fileMethods = service("orchestrator.v1.VolumeFileService");
    const { body } = await program.api("GET", "/v1/me/org");
    const token = await readFile(join(program.dataDir, "service-token"), "utf8");
    metadata = new Metadata();
    metadata.set("authorization", `Bearer ${token.trim()}`);
    metadata.set("sandgate-organization-id", body.id);
  });
  afterAll(async () => {
    client.close();
    fileClient.close();
    await program.close();
  });

  function call(
    name: string,
    request: object,
    as = metadata,
    deadlineMs = 10_000,
  ): Promise<unknown> {
    const method = methods[name];
    if (!method) throw new Error(`no method ${name}`);
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        as,
        { deadline: Date.now() + deadlineMs },
        (error, answer) => (error ? reject(error) : resolve(answer)),
      );
    });
  }

  test("a gRPC client makes what a REST client reads, and the other way round", async () => {
    const made = await call("CreateSandbox", {
      name: "by-grpc",
      start: true,
      spec: {
        image: "alpine",
        rlimits: [{ resource: "RLIMIT_RESOURCE_NOFILE", soft: "64", hard: "64" }],
      },
    });
    expect(made).toMatchObject({ sandbox: { name: "by-grpc", status: "SANDBOX_STATUS_STARTING" } });
    const read = async () => (await program.api("GET", "/v1/sandboxes/by-name/by-grpc")).body;
    await expect.poll(async () => (await read()).status).toBe("running");
    expect((await read()).spec.rlimits).toEqual([{ resource: "Nofile", soft: 64, hard: 64 }]);
    await program.api("POST", "/v1/sandboxes", { ...image(), name: "by-rest" });
    expect(await call("GetSandbox", { key: { name: "by-rest" } })).toMatchObject({
      sandbox: { name: "by-rest", status: "SANDBOX_STATUS_CREATED" },
    });
  });

  test("refusals carry their code, and a caller without the token learns nothing", async () => {
    await expect(call("GetSandbox", { key: { name: "nobody" } })).rejects.toMatchObject({
      code: status.NOT_FOUND,
    });
    await expect(call("StartSandbox", { key: { name: "by-grpc" } })).rejects.toMatchObject({
      code: status.FAILED_PRECONDITION,
    });
    await expect(
      call("GetSandbox", { key: { name: "by-rest" } }, new Metadata()),
    ).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  });

  test("a gRPC client sends a file and receives it, as streams", async () => {
    // Whatever the loader knows of it.
    const { volume } = (await call("GetHostVolume", {})) as { volume: { id: string } };
    const target = { volume_id: volume.id, path: "/by/grpc" };
    const pieces = Array.from({ length: 8 }, (_, i) => Buffer.alloc(256 * 1024, i));
    const { WriteFile: write, ReadFile: read } = fileMethods;
    if (!write || !read) throw new Error("no methods of files");
    const answer = Promise.withResolvers<unknown>();
    const sending = fileClient.makeClientStreamRequest(
      write.path,
      write.requestSerialize,
      write.responseDeserialize,
      metadata,
      (error, given) => (error ? answer.reject(error) : answer.resolve(given)),
    );
    sending.write({ target });
    for (const data of pieces) sending.write({ data });
    sending.write({ end: {} });
    sending.end();
    expect(await answer.promise).toMatchObject({
      info: { path: "/by/grpc", kind: "FILE_KIND_FILE", size: String(2 ** 21) },
    });
    const receiving = fileClient.makeServerStreamRequest(
      read.path,
      read.requestSerialize,
      read.responseDeserialize,
      { ...target, offset: 256 * 1024 },
      metadata,
    );
    const received: Buffer[] = [];
    for await (const { part, data } of receiving) if (part === "data") received.push(data);
    expect(Buffer.concat(received).equals(Buffer.concat(pieces.slice(1)))).toBe(true);
    const missing = { volume_id: volume.id, path: "/nothing" };
    const refused = fileClient.makeServerStreamRequest(
      read.path,
      read.requestSerialize,
      read.responseDeserialize,
      missing,
      metadata,
    );
    const drained = async () => {
      for await (const _ of refused);
    };
    await expect(drained()).rejects.toMatchObject({ code: status.NOT_FOUND });
  });
});
