import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SandboxSpecSchema } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { VolumeKind, VolumeSchema, VolumeStatus } from "../../../proto/gen/sandbox/v1/volume_pb.ts";
import { UpdateVolumeRequestSchema } from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { canonicalSpec, inOrder } from "../../../services/sandbox/domain/canonical-spec.ts";
import type * as domain from "../../../services/sandbox/domain/spec.ts";
import { RLIMIT_RESOURCES } from "../../../services/sandbox/domain/spec.ts";
import type { Volume } from "../../../services/sandbox/domain/volume.ts";
import {
  sealedFromMessage,
  specFromMessage,
  specToMessage,
} from "../../../services/sandbox/messages/spec.ts";
import {
  updateVolumeFromMessage,
  volumeToMessage,
} from "../../../services/sandbox/messages/volumes.ts";

const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });
const int32 = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const int53 = fc.maxSafeNat();
const map = fc.dictionary(fc.string({ minLength: 1 }), fc.string(), { noNullPrototype: true });
const env = fc.array(fc.record({ key: fc.string({ minLength: 1 }), value: fc.string() }));
const options = fc.record({
  nodev: fc.boolean(),
  noexec: fc.boolean(),
  nosuid: fc.boolean(),
  readonly: fc.boolean(),
});
const base = { guest: fc.string({ minLength: 1 }).map((path) => `/${path}`), options };
const mount: fc.Arbitrary<domain.Mount> = fc.oneof(
  fc.record({ ...base, type: fc.constant("tmpfs" as const), sizeMib: orNull(int32) }),
  fc.record({
    ...base,
    type: fc.constant("disk_image" as const),
    // Never in a message of an answer.
    host: fc.constant(""),
    format: fc.constantFrom("qcow2" as const, "raw" as const, "vmdk" as const),
    fstype: orNull(fc.string()),
  }),
  fc.record({
    ...base,
    type: fc.constant("named" as const),
    name: fc.constant(""),
    statVirtualization: fc.constantFrom("strict" as const, "relaxed" as const, "off" as const),
    hostPermissions: fc.constantFrom("private" as const, "mirror" as const),
  }),
  fc.record({
    ...base,
    type: fc.constant("bind" as const),
    host: fc.constant(""),
    statVirtualization: fc.constantFrom("strict" as const, "relaxed" as const, "off" as const),
    hostPermissions: fc.constantFrom("private" as const, "mirror" as const),
    quotaMib: orNull(int32),
  }),
);
const host: fc.Arbitrary<domain.HostPattern> = fc.oneof(
  fc.constant({ kind: "any" as const }),
  fc.record({ kind: fc.constantFrom("exact" as const, "wildcard" as const), value: fc.string() }),
);
const violation: fc.Arbitrary<domain.ViolationAction> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      "block" as const,
      "block_and_log" as const,
      "block_and_terminate" as const,
    ),
  }),
  fc.record({ kind: fc.constant("passthrough" as const), hosts: fc.array(host) }),
);
const destination: fc.Arbitrary<domain.NetworkDestination> = fc.oneof(
  fc.constant({ kind: "any" as const }),
  fc.record({
    kind: fc.constantFrom("cidr" as const, "domain" as const, "domain_suffix" as const),
    value: fc.string(),
  }),
  fc.record({
    kind: fc.constant("group" as const),
    value: fc.constantFrom<domain.DestinationGroup>(
      "public",
      "loopback",
      "private",
      "link_local",
      "metadata",
      "multicast",
      "host",
    ),
  }),
);
const action = fc.constantFrom("allow" as const, "deny" as const);
const policy = fc.record({
  defaultEgress: action,
  defaultIngress: action,
  rules: fc.array(
    fc.record({
      direction: fc.constantFrom("egress" as const, "ingress" as const, "any" as const),
      destination,
      action,
      ports: fc.array(fc.record({ start: fc.nat(65535), end: fc.nat(65535) })),
      protocols: fc.array(
        fc.constantFrom("tcp" as const, "udp" as const, "icmpv4" as const, "icmpv6" as const),
      ),
    }),
  ),
});
const secrets = fc.record({
  onViolation: violation,
  entries: fc.array(
    fc.record({
      envVar: fc.string({ minLength: 1 }),
      placeholder: fc.string({ minLength: 1 }),
      allowedHosts: fc.array(host),
      injection: fc.record({
        headers: fc.boolean(),
        basicAuth: fc.boolean(),
        queryParams: fc.boolean(),
        body: fc.boolean(),
      }),
      onViolation: violation,
      requireTlsIdentity: fc.boolean(),
    }),
  ),
});
const spec: fc.Arbitrary<domain.SandboxSpec> = fc.record({
  image: fc.string({ minLength: 1 }),
  resources: fc.record({ vcpus: int32, memoryMib: int32, diskSizeMib: orNull(fc.nat()) }),
  runtime: fc.record({
    cmd: orNull(fc.array(fc.string())),
    entrypoint: orNull(fc.array(fc.string())),
    shell: orNull(fc.string()),
    user: orNull(fc.string()),
    workdir: orNull(fc.string()),
    logLevel: orNull(fc.constantFrom<domain.LogLevel>("error", "warn", "info", "debug", "trace")),
    scripts: map,
  }),
  env,
  labels: map,
  rlimits: fc.array(
    fc.record({ resource: fc.constantFrom(...RLIMIT_RESOURCES), soft: int53, hard: int53 }),
  ),
  mounts: fc.array(mount),
  network: fc.record({
    enabled: fc.boolean(),
    policy: orNull(policy),
    secrets: orNull(secrets),
    maxConnections: orNull(int53),
    strict: fc.boolean(),
  }),
  init: orNull(fc.record({ cmd: fc.string(), args: fc.array(fc.string()), env })),
  pullPolicy: fc.constantFrom("if_missing" as const, "always" as const, "never" as const),
  securityProfile: fc.constantFrom("default" as const, "restricted" as const),
  lifecycle: fc.record({
    ephemeral: fc.boolean(),
    idleTimeoutSecs: orNull(int53),
    maxDurationSecs: orNull(int53),
  }),
  registry: fc.constantFrom<domain.Registry>(
    { mode: "auto" },
    { mode: "anonymous" },
    { mode: "inline" },
    { mode: "specific", credentialId: "c" },
  ),
});

const overTheWire = (init: MessageInitShape<typeof SandboxSpecSchema>) =>
  fromBinary(SandboxSpecSchema, toBinary(SandboxSpecSchema, create(SandboxSpecSchema, init)));

test("spec -> message -> wire -> message -> spec is the same spec", () => {
  fc.assert(
    fc.property(spec, (given) => {
      expect(specFromMessage(overTheWire(specToMessage(given)))).toEqual(given);
    }),
    { numRuns: 300 },
  );
});

test("spec -> row -> spec is the same spec", () => {
  fc.assert(
    fc.property(spec, (given) => {
      expect(JSON.parse(JSON.stringify(given))).toEqual(given);
    }),
  );
});

test("the canonical form is stable, and keeps the last of what repeats", () => {
  fc.assert(
    fc.property(spec, (given) => {
      const once = canonicalSpec(given);
      expect(canonicalSpec(once)).toEqual(once);
      const keys = once.env.map(({ key }) => key);
      expect(new Set(keys).size).toBe(keys.length);
      for (const { key, value } of once.env)
        expect(given.env.findLast((variable) => variable.key === key)?.value).toBe(value);
    }),
  );
});

test("mount points are canonical, and parents are shown first", () => {
  const tmpfs = (guest: string): domain.Mount => ({
    guest,
    options: { nodev: false, noexec: false, nosuid: false, readonly: false },
    type: "tmpfs",
    sizeMib: null,
  });
  const plain = specFromMessage(create(SandboxSpecSchema, { image: "a" }));
  const mounts = ["/a/b/", "//a", "/a-b", "/a/./b/c"].map(tmpfs);
  const stored = canonicalSpec({ ...plain, mounts });
  const guestsOf = (spec: domain.SandboxSpec) => spec.mounts.map(({ guest }) => guest);
  expect(guestsOf(stored)).toEqual(["/a/b", "/a", "/a-b", "/a/b/c"]);
  expect(guestsOf(inOrder(stored))).toEqual(["/a", "/a-b", "/a/b", "/a/b/c"]);
});

test("what a message leaves out has its default", () => {
  const message = overTheWire({
    image: "a",
    network: { policy: {}, secrets: { entries: [{ envVar: "K", placeholder: "P" }] } },
  });
  expect(specFromMessage(message)).toEqual({
    image: "a",
    resources: { vcpus: 1, memoryMib: 512, diskSizeMib: null },
    runtime: {
      cmd: null,
      entrypoint: null,
      shell: null,
      user: null,
      workdir: null,
      logLevel: null,
      scripts: {},
    },
    env: [],
    labels: {},
    rlimits: [],
    mounts: [],
    network: {
      enabled: true,
      policy: { defaultEgress: "deny", defaultIngress: "deny", rules: [] },
      secrets: {
        onViolation: { kind: "block_and_log" },
        entries: [
          {
            envVar: "K",
            placeholder: "P",
            allowedHosts: [],
            injection: { headers: true, basicAuth: true, queryParams: false, body: false },
            onViolation: { kind: "block_and_log" },
            requireTlsIdentity: true,
          },
        ],
      },
      maxConnections: null,
      strict: false,
    },
    init: null,
    pullPolicy: "if_missing",
    securityProfile: "default",
    lifecycle: { ephemeral: false, idleTimeoutSecs: null, maxDurationSecs: null },
    registry: { mode: "auto" },
  });
});

const volume: fc.Arbitrary<Volume> = fc.record({
  id: fc.uuid(),
  orgId: fc.uuid(),
  kind: fc.constantFrom("host" as const, "managed" as const),
  name: orNull(fc.string()),
  status: fc.constantFrom("active" as const, "deleting" as const),
  capacityGib: orNull(int32),
  usedBytes: orNull(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })),
  labels: map,
  createdAt: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
  updatedAt: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
});

test("volume -> message -> wire is the same volume", () => {
  fc.assert(
    fc.property(volume, (given) => {
      const bytes = toBinary(VolumeSchema, volumeToMessage(given));
      const read = fromBinary(VolumeSchema, bytes);
      const kinds = { [VolumeKind.HOST]: "host", [VolumeKind.MANAGED]: "managed" };
      const statuses = { [VolumeStatus.ACTIVE]: "active", [VolumeStatus.DELETING]: "deleting" };
      expect({
        id: read.id,
        orgId: read.orgId,
        kind: kinds[read.kind as keyof typeof kinds],
        name: read.name ?? null,
        status: statuses[read.status as keyof typeof statuses],
        capacityGib: read.capacityGib ?? null,
        usedBytes: read.usedBytes ?? null,
        labels: read.labels,
        createdAt: read.createdAt && timestampDate(read.createdAt),
        updatedAt: read.updatedAt && timestampDate(read.updatedAt),
      }).toEqual(given);
    }),
  );
});

test.each([
  [{}, { capacityGib: undefined, labels: undefined }],
  [
    { capacity: {}, labels: {} },
    { capacityGib: null, labels: {} },
  ],
  [
    { capacity: { gib: 5 }, labels: { values: { a: "b" } } },
    { capacityGib: 5, labels: { a: "b" } },
  ],
])("of a change absent, none and a value are told apart: %j", (given, read) => {
  const message = create(UpdateVolumeRequestSchema, given);
  const wire = toBinary(UpdateVolumeRequestSchema, message);
  expect(updateVolumeFromMessage(fromBinary(UpdateVolumeRequestSchema, wire))).toEqual(read);
});

test("what is sealed: patches, secret values and sources, inline credentials", () => {
  const message = overTheWire({
    patches: [
      {
        kind: {
          case: "file",
          value: { path: "/f", content: new Uint8Array([0, 255]), mode: 0o600 },
        },
      },
      { kind: { case: "copyDir", value: { src: "a", dst: "/b", replace: true } } },
    ],
    network: {
      secrets: {
        entries: [
          { value: "v", source: { kind: { case: "store", value: "ref" } } },
          { value: "w" },
        ],
      },
    },
    registry: { mode: { case: "inline", value: { username: "u", password: "p" } } },
  });
  expect(sealedFromMessage(message)).toEqual({
    patches: [
      { kind: "file", path: "/f", content: "AP8=", mode: 0o600, replace: false },
      { kind: "copy_dir", src: "a", dst: "/b", replace: true },
    ],
    secrets: [
      { value: "v", source: { kind: "store", value: "ref" } },
      { value: "w", source: null },
    ],
    registry: { username: "u", password: "p" },
  });
});
