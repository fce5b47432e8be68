import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FieldFault, type Reason, ServiceError } from "../../runtime/errors.ts";
import { body } from "./support/bodies.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway({ rpcTimeoutMs: 100 });
});
afterAll(() => gateway.close());
beforeEach(() => {
  gateway.logged.length = 0;
});

const create = (thrown: unknown) => {
  gateway.services.sandbox.createSandbox = async () => {
    throw thrown;
  };
  return gateway.call("POST", "/v1/sandboxes", body());
};
const fault = (field: string, message = "is wrong"): FieldFault => ({ field, message });

type Details = { metadata?: Record<string, string>; faults?: FieldFault[] };
const id = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";

const refusals: [Reason, Details, number, object][] = [
  [
    "INVALID_REQUEST",
    { faults: [fault("spec.mounts[0].guest"), fault("spec.image")] },
    400,
    {
      code: "invalid_request",
      message: "invalid request: mounts[0].guest: is wrong",
      details: { errors: [fault("mounts[0].guest"), fault("image.reference")] },
    },
  ],
  [
    "INVALID_SANDBOX_CONFIG",
    { faults: [fault("network.strict"), fault("mounts[1]")] },
    400,
    {
      code: "invalid_sandbox_config",
      message: "network.strict: is wrong",
      details: { field: "network.strict", errors: [fault("network.strict"), fault("mounts[1]")] },
    },
  ],
  ["INVALID_API_KEY", {}, 401, { code: "invalid_api_key", message: "unauthorized", details: null }],
  [
    "ORG_SUSPENDED",
    {},
    403,
    { code: "org_suspended", message: "organization suspended", details: null },
  ],
  [
    "QUOTA_EXCEEDED",
    { metadata: { quota: "max_vcpus_per_sandbox", limit: "2", requested: "3" } },
    403,
    {
      code: "quota_exceeded",
      message: "quota exceeded: max_vcpus_per_sandbox (limit 2, requested 3)",
      details: { quota: "max_vcpus_per_sandbox", limit: 2, used: null, requested: 3 },
    },
  ],
  [
    "NAME_ALREADY_EXISTS",
    { metadata: { field: "name", sandbox_id: id, status: "running", internal: "x" } },
    409,
    {
      code: "name_already_exists",
      message: "'name' already exists",
      details: { field: "name", sandbox_id: id, status: "running" },
    },
  ],
  [
    "NAME_ALREADY_EXISTS",
    { metadata: { field: "slug" } },
    409,
    { code: "name_already_exists", message: "'slug' already exists", details: { field: "slug" } },
  ],
  ["RATE_LIMITED", {}, 429, { code: "rate_limited", message: "too many requests", details: null }],
  [
    "ORCHESTRATOR_UNREACHABLE",
    {},
    502,
    { code: "orchestrator_unreachable", message: "orchestrator unreachable", details: null },
  ],
  [
    "SERVICE_UNAVAILABLE",
    {},
    503,
    { code: "service_unavailable", message: "service unavailable", details: null },
  ],
];

describe("a refusal", () => {
  test.each(refusals)("%s %j", async (reason, details, status, error) => {
    const answer = await create(new ServiceError(reason, "words for operators", details));
    expect(answer).toMatchObject({ status });
    expect(answer.body).toEqual({ error });
  });

  test("INVALID_STATE_TRANSITION", async () => {
    gateway.services.sandbox.stopSandbox = async () => {
      const metadata = { from: "created", action: "stop", generation: "1" };
      throw new ServiceError("INVALID_STATE_TRANSITION", "no", { metadata });
    };
    const answer = await gateway.call("POST", `/v1/sandboxes/${id}/stop`);
    expect(answer.status).toBe(409);
    expect(answer.body.error).toEqual({
      code: "invalid_state_transition",
      message: "invalid state transition",
      details: { from: "created", action: "stop" },
    });
  });

  test("ORG_NOT_FOUND", async () => {
    gateway.services.organization.getOrganization = async () => {
      throw new ServiceError("ORG_NOT_FOUND", "gone");
    };
    const answer = await gateway.call("GET", "/v1/me/org");
    expect(answer.status).toBe(404);
    expect(answer.body.error).toEqual({
      code: "org_not_found",
      message: "org not found",
      details: null,
    });
  });

  test("leaves the log alone where the client is at fault", async () => {
    await create(new ServiceError("NAME_ALREADY_EXISTS", "taken", { metadata: { field: "name" } }));
    expect(gateway.logged).toEqual([]);
  });
});

describe("the paths of a service's faults become public ones", () => {
  test.each([
    ["spec.env[0].key", "env[0].key"],
    ["spec.mounts[2].disk_image.host", "mounts[2].host"],
    ["spec.mounts[2].bind", "mounts[2]"],
    ["spec.patches[1].copy_file.dst", "patches[1].dst"],
    ["spec.registry.specific.credential_id", "registry.credential_id"],
    ["registry.credential_id", "registry.credential_id"],
    ["slug", "slug"],
    ["page_token", "cursor"],
    ["page_size", "limit"],
    ["statuses[0]", "status[0]"],
    ["key.id", "sandbox_id"],
  ])("%s is %s", async (internal, path) => {
    const { body: answer } = await create(
      new ServiceError("INVALID_REQUEST", "no", { faults: [fault(internal)] }),
    );
    expect(answer.error.details.errors).toEqual([fault(path)]);
  });
});

describe("a failure", () => {
  test.each([
    ["unavailable", Code.Unavailable, 503, "service_unavailable"],
    ["late", Code.DeadlineExceeded, 504, "deadline_exceeded"],
    ["unknown", Code.Unknown, 500, "internal"],
    ["of the data", Code.DataLoss, 500, "internal"],
    ["of the service", Code.Internal, 500, "internal"],
  ] as const)("%s", async (_name, code, status, expected) => {
    const answer = await create(new ConnectError("secret words", code));
    expect(answer).toMatchObject({ status, body: { error: { code: expected, details: null } } });
    expect(JSON.stringify(answer.body)).not.toContain("secret");
    expect(answer.headers["retry-after"]).toBe(status === 503 ? "1" : undefined);
  });

  test("that nobody expected says nothing, but to the log, with its cause and the request", async () => {
    gateway.services.sandbox.createSandbox = async () => ({});
    const headers = { "x-request-id": "req-77" };
    const answer = await gateway.call("POST", "/v1/sandboxes", body(), { headers });
    expect(answer.status).toBe(500);
    expect(answer.body.error).toEqual({
      code: "internal",
      message: "internal error",
      details: null,
    });
    expect(gateway.logged).toEqual([
      expect.objectContaining({
        request_id: "req-77",
        err: expect.objectContaining({ message: "the answer holds no sandbox" }),
      }),
    ]);
  });

  test("to answer in time is 504", async () => {
    gateway.services.sandbox.listSandboxes = () => new Promise(() => undefined);
    expect(await gateway.call("GET", "/v1/sandboxes")).toMatchObject({
      status: 504,
      body: { error: { code: "deadline_exceeded" } },
    });
  });
});
