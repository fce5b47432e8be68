import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import {
  type CallOptions,
  Client,
  credentials,
  Metadata,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../proto/gen/google/rpc/status_pb.ts";
import { writeCaller } from "../../runtime/rpc/caller-headers.ts";
import { SANDBOX_ID } from "../support/fake-services.ts";
import { CALLER, startServer, TOKEN } from "./support.ts";

describe("a gRPC client of another make, with the proto files alone", () => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let client: Client;
  let methods: ServiceDefinition;

  beforeAll(async () => {
    server = await startServer();
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    const definition = await load("sandbox/v1/sandbox_service.proto", {
      includeDirs: ["proto", "third_party"],
      keepCase: true,
      enums: String,
      longs: String,
    });
    // Of what the loader returns, names of services stand for services.
    methods = definition["sandbox.v1.SandboxService"] as ServiceDefinition;
  });
  afterAll(async () => {
    client.close();
    await server.close();
  });

  test("gets an answer", async () => {
    expect(await call("GetSandbox", { key: { name: "box" } })).toMatchObject({
      sandbox: { id: SANDBOX_ID, org_id: CALLER.orgId, name: "box" },
    });
  });

  test("sends and receives a spec", async () => {
    const spec = {
      image: "alpine:3.20",
      mounts: [{ guest: "/data", tmpfs: { size_mib: 64 } }],
      rlimits: [{ resource: "RLIMIT_RESOURCE_NOFILE", soft: "1024", hard: "2048" }],
      labels: { team: "core" },
    };
    expect(await call("CreateSandbox", { name: "box", spec })).toMatchObject({ sandbox: { spec } });
  });

  test("gets the reason of a refusal", async () => {
    const error = await failure(call("GetSandbox", { key: { name: "missing" } }));
    expect(error).toMatchObject({ code: status.NOT_FOUND, details: "resource not found" });
    expect(detailsOf(error)).toEqual([
      expect.objectContaining({ domain: "sandgate", reason: "SANDBOX_NOT_FOUND" }),
    ]);
  });

  test("gets every fault of a request", async () => {
    const request = { name: "-", spec: { image: "UPPER" } };
    const error = await failure(call("CreateSandbox", request));
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(detailsOf(error)).toEqual([
      expect.objectContaining({ reason: "INVALID_REQUEST" }),
      expect.objectContaining({
        fieldViolations: [
          expect.objectContaining({ field: "name" }),
          expect.objectContaining({ field: "spec.image" }),
        ],
      }),
    ]);
  });

  test("is held to its deadline by the server too", async () => {
    const before = server.fake.calls.length;
    const error = await failure(
      call("GetSandbox", { key: { name: "slow" } }, { deadline: Date.now() + 200 }),
    );
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
    const handler = server.fake.calls[before];
    expect(handler?.timeoutMs()).toBeLessThanOrEqual(200);
    await expect.poll(() => handler?.signal.aborted).toBe(true);
  });

  test("without the token learns nothing", async () => {
    const error = await failure(call("GetSandbox", { key: { name: "missing" } }, {}, "wrong"));
    expect(error).toMatchObject({ code: status.UNAUTHENTICATED, details: "unauthenticated" });
  });

  function call(name: string, request: object, options: CallOptions = {}, token = TOKEN) {
    const method = methods[name];
    if (method === undefined) throw new Error(`no method ${name}`);
    const { path, requestSerialize, responseDeserialize } = method;
    const metadata = metadataOf(token);
    return new Promise<unknown>((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        options,
        (error, answer) => (error ? reject(error) : resolve(answer)),
      );
    });
  }
});

function metadataOf(token: string): Metadata {
  const header = new Headers({ authorization: `Bearer ${token}` });
  writeCaller(header, CALLER);
  const metadata = new Metadata();
  for (const [name, value] of header) metadata.set(name, value);
  return metadata;
}

async function failure(call: Promise<unknown>): Promise<ServiceError> {
  return call.then(
    () => Promise.reject(new Error("the call did not fail")),
    (error: ServiceError) => error,
  );
}

function detailsOf(error: ServiceError) {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!(bytes instanceof Buffer)) throw new Error("no details");
  const { details } = fromBinary(StatusSchema, bytes);
  return details.map(
    (detail) => anyUnpack(detail, ErrorInfoSchema) ?? anyUnpack(detail, BadRequestSchema),
  );
}
