import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { VolumeKind, VolumeStatus } from "../../proto/gen/sandbox/v1/volume_pb.ts";
import type {
  CreateVolumeRequest,
  UpdateVolumeRequest,
} from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Caller } from "../../runtime/caller.ts";
import { type Reason, ServiceError } from "../../runtime/errors.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";
import { VOLUME_ID, volumeMessage } from "./support/volumes.ts";

const PATH = `/v1/volumes/${VOLUME_ID}`;
const PUBLIC = {
  id: VOLUME_ID,
  kind: "managed",
  name: "datasets",
  status: "active",
  storage: "block",
  capacity_bytes: null,
  used_bytes: null,
  labels: { team: "build" },
  created_at: "2026-11-21T08:20:11.730Z",
  updated_at: "2026-11-21T08:20:11.730Z",
};
const HOST = volumeMessage({
  kind: VolumeKind.HOST,
  name: undefined,
  status: VolumeStatus.DELETING,
  capacityGib: 3,
  usedBytes: 2n ** 40n,
  labels: {},
});
const PUBLIC_HOST = {
  ...PUBLIC,
  kind: "host",
  name: null,
  status: "deleting",
  capacity_bytes: 3_221_225_472,
  used_bytes: 1_099_511_627_776,
  labels: {},
};

let gateway: Gateway;
let callers: Caller[];
beforeEach(async () => {
  gateway = await openGateway();
  callers = [];
});
afterEach(() => gateway.close());

const seen = (context: HandlerContext) => void callers.push(requireCaller(context));

describe("a volume", () => {
  test("is read by its id, by anyone's spelling of that", async () => {
    const asked: string[] = [];
    gateway.services.volumes.getVolume = async ({ id }, context) => {
      seen(context);
      asked.push(id);
      return { volume: volumeMessage() };
    };
    const answer = await gateway.call("GET", `/v1/volumes/${VOLUME_ID.toUpperCase()}`);
    expect(answer).toMatchObject({ status: 200, body: PUBLIC });
    expect(asked).toEqual([VOLUME_ID]);
    expect(callers).toMatchObject([{ orgId: ORG_ID, actor: { kind: "api_key" } }]);
  });

  test("is listed in a bare array, with what there is in bytes", async () => {
    gateway.services.volumes.listVolumes = async () => ({ volumes: [HOST, volumeMessage()] });
    expect((await gateway.call("GET", "/v1/volumes")).body).toEqual([PUBLIC_HOST, PUBLIC]);
    gateway.services.volumes.listVolumes = async () => ({});
    expect((await gateway.call("GET", "/v1/volumes")).body).toEqual([]);
  });

  test("of the organization itself is the default one", async () => {
    gateway.services.volumes.getHostVolume = async () => ({ volume: HOST });
    expect((await gateway.call("GET", "/v1/volumes/default")).body).toEqual(PUBLIC_HOST);
    expect(faultPaths(await gateway.call("DELETE", "/v1/volumes/default"))).toEqual(["id"]);
  });

  test("whose id is none is a fault of the path", async () => {
    for (const [method, suffix] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/files"],
      ["GET", "/files/stat"],
    ] as const)
      expect(faultPaths(await gateway.call(method, `/v1/volumes/datasets${suffix}`))).toContain(
        "id",
      );
  });
});

describe("a create", () => {
  let asked: CreateVolumeRequest[];
  beforeEach(() => {
    asked = [];
    gateway.services.volumes.createVolume = async (request) => {
      asked.push(request);
      return { volume: volumeMessage() };
    };
  });

  test("takes null for what it may leave out", async () => {
    const full = { name: "a", capacity_gib: 2 ** 23 - 1, storage: "block", labels: { "": "" } };
    for (const body of [
      { name: "a-1" },
      { name: "a-1", capacity_gib: null, storage: null, labels: null },
      { ...full, labels: { a: "b", "ä ö": "" } },
    ])
      expect(await gateway.call("POST", "/v1/volumes", body)).toMatchObject({
        status: 200,
        body: PUBLIC,
      });
    const told = asked.map(({ name, capacityGib, labels }) => [name, capacityGib, labels?.values]);
    expect(told).toEqual([
      ["a-1", undefined, {}],
      ["a-1", undefined, {}],
      ["a", 2 ** 23 - 1, { a: "b", "ä ö": "" }],
    ]);
  });

  test("names every fault, and what it ignored", async () => {
    const labels = { "": "", "sandbox.x": "", ok: 1 };
    const body = { name: "-", capacity_gib: 0, storage: "object", labels };
    expect(faultPaths(await gateway.call("POST", "/v1/volumes", body)).sort()).toEqual(
      ["capacity_gib", 'labels[""]', "labels.ok", 'labels["sandbox.x"]', "name", "storage"].sort(),
    );
    for (const name of ["", "A", "a--b", "a".repeat(64), null, undefined])
      expect(faultPaths(await gateway.call("POST", "/v1/volumes", { name }))).toEqual(["name"]);
    for (const capacity_gib of ["5", 1.5, 2 ** 23, 2 ** 31, -1, true])
      expect(
        faultPaths(await gateway.call("POST", "/v1/volumes", { name: "a", capacity_gib })),
      ).toEqual(["capacity_gib"]);
    expect(asked).toEqual([]);
    const { headers } = await gateway.call("POST", "/v1/volumes", { name: "a", size: 1 });
    expect(headers["x-ignored-fields"]).toBe("size");
  });
});

describe("a change", () => {
  test("tells absent, null and a value apart", async () => {
    const asked: UpdateVolumeRequest[] = [];
    gateway.services.volumes.updateVolume = async (request) => {
      asked.push(request);
      return { volume: volumeMessage() };
    };
    for (const body of [
      {},
      { capacity_gib: null },
      { capacity_gib: 7 },
      { labels: null },
      { labels: {} },
      { labels: { a: "b" }, capacity_gib: 1 },
    ])
      expect((await gateway.call("PATCH", PATH, body)).body).toEqual(PUBLIC);
    const told = asked.map(({ id, capacity, labels }) => [
      id === VOLUME_ID,
      capacity && (capacity.gib ?? null),
      labels?.values,
    ]);
    expect(told).toEqual([
      [true, undefined, undefined],
      [true, null, undefined],
      [true, 7, undefined],
      [true, undefined, undefined],
      [true, undefined, {}],
      [true, 1, { a: "b" }],
    ]);
    expect(faultPaths(await gateway.call("PATCH", PATH))).toEqual(["body"]);
    expect(faultPaths(await gateway.call("PATCH", PATH, { capacity_gib: 0 }))).toEqual([
      "capacity_gib",
    ]);
  });

  test("carries its idempotency key, and says when it was made before", async () => {
    const { volumes } = gateway.services;
    const replay = { replay: { answer: new Uint8Array() } };
    volumes.createVolume = async (_request, context) => {
      seen(context);
      return { volume: volumeMessage(), ...replay };
    };
    volumes.updateVolume = async () => ({ volume: volumeMessage(), ...replay });
    volumes.deleteVolume = async () => replay;
    const options = { headers: { "idempotency-key": "k-1" } };
    for (const [method, path, body] of [
      ["POST", "/v1/volumes", { name: "a" }],
      ["PATCH", PATH, {}],
      ["DELETE", PATH, undefined],
    ] as const) {
      const { status, headers } = await gateway.call(method, path, body, options);
      expect([status, headers["idempotent-replayed"]]).toEqual([200, "true"]);
    }
    expect(callers).toMatchObject([{ idempotency: { key: "k-1" } }]);
    volumes.deleteVolume = async () => ({});
    const { headers, body } = await gateway.call("DELETE", PATH, undefined, options);
    expect([headers["idempotent-replayed"], body]).toEqual([
      undefined,
      { message: "volume deleted" },
    ]);
  });
});

test("what a service refuses has its public answer", async () => {
  const refused = (reason: Reason, message = "", metadata = {}, fields: string[] = []) =>
    new ServiceError(reason, message, {
      metadata,
      faults: fields.map((field) => ({ field, message: "is wrong" })),
    });
  const inUse = "mounted by trainer, builder";
  const cases = [
    [refused("VOLUME_NOT_FOUND"), 404, "volume_not_found", "resource not found"],
    [refused("VOLUME_ALREADY_EXISTS"), 409, "volume_already_exists", "'name' already exists"],
    [
      refused("VOLUME_IN_USE", inUse, { sandboxes: "trainer, builder" }),
      409,
      "volume_in_use",
      inUse,
    ],
    [
      refused("VOLUME_PROTECTED", "the host volume cannot be deleted"),
      409,
      "invalid_request",
      "the host volume cannot be deleted",
    ],
  ] as const;
  for (const [error, status, code, message] of cases) {
    gateway.services.volumes.deleteVolume = async () => {
      throw error;
    };
    expect(await gateway.call("DELETE", PATH)).toMatchObject({
      status,
      body: { error: { code, message } },
    });
  }
  gateway.services.volumes.updateVolume = async () => {
    throw refused("INVALID_REQUEST", "", {}, [
      "capacity.gib",
      'labels.values["a b"]',
      "labels.values",
    ]);
  };
  expect(faultPaths(await gateway.call("PATCH", PATH, {}))).toEqual([
    "capacity_gib",
    'labels["a b"]',
    "labels",
  ]);
  gateway.services.sandbox.createSandbox = async () => {
    throw refused("INVALID_REQUEST", "", {}, ["spec.mounts[0].name", "spec.mounts[1].bind.host"]);
  };
  const image = { type: "oci", reference: "alpine" };
  expect(faultPaths(await gateway.call("POST", "/v1/sandboxes", { image }))).toEqual([
    "mounts[0].name",
    "mounts[1].host",
  ]);
});
