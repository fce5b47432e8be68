import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AuthenticateKeyRequestSchema } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import {
  CreateSandboxRequestSchema,
  GetSandboxRequestSchema,
  ListSandboxesRequestSchema,
  RenameSandboxRequestSchema,
  ReportRequestSchema,
} from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import {
  DiskImageFormat,
  HostPermissions,
  NetworkAction,
  NetworkDirection,
  RlimitResource,
  type SandboxSpecSchema,
  StatVirtualization,
} from "../../proto/gen/sandbox/v1/spec_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { validateRequest } from "../../runtime/rpc/validate.ts";

type Plain<Desc extends DescMessage> = Exclude<MessageInitShape<Desc>, Message>;
type Spec = Plain<typeof SandboxSpecSchema>;
type Create = Plain<typeof CreateSandboxRequestSchema>;

/** A number that no enum of the contract knows. */
const UNKNOWN = 99 as never;
const DIGEST = `sha256:${"0a".repeat(32)}`;
const ID = "019a7c1e-0000-7000-8000-000000000001";

function faultsOf<D extends DescMessage>(schema: D, init: MessageInitShape<D>): string[] {
  try {
    validateRequest(schema, create(schema, init));
    return [];
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect(error.reason).toBe("INVALID_REQUEST");
    return [...new Set(error.faults.map(({ field }) => field))];
  }
}

const createFaults = (request: Create) => faultsOf(CreateSandboxRequestSchema, request);
const specFaults = (spec: Partial<Spec>) => createFaults({ spec: { image: "alpine", ...spec } });

const TMPFS = { case: "tmpfs", value: {} } as const;
const mountsAt = (...guests: string[]) => guests.map((guest) => ({ guest, source: TMPFS }));

function rule(part: object) {
  const anywhere = { kind: { case: "any", value: {} } } as const;
  const { EGRESS: direction } = NetworkDirection;
  const whole = { direction, destination: anywhere, action: NetworkAction.ALLOW, ...part };
  return { network: { policy: { rules: [whole] } } };
}

function secret(part: object) {
  return { network: { secrets: { entries: [{ envVar: "TOKEN", placeholder: "$T", ...part }] } } };
}

describe("a create is accepted", () => {
  test.each<[string, Create]>([
    ["without a name", { name: "" }],
    ["with every character of a name", { name: "0aZ._-" }],
    ["with the longest name", { name: "a".repeat(128) }],
    ["with a slug", { slug: "a-1-b" }],
  ])("%s", (_, request) => {
    expect(createFaults({ spec: { image: "alpine" }, ...request })).toEqual([]);
  });

  test.each([
    "alpine",
    "alpine:3.20",
    "docker.io/library/alpine:3.20",
    "localhost:5000/a/b__c/d--e.f_g",
    "[2001:db8::1]:5000/a",
    `ghcr.io/a/b:v1@${DIGEST}`,
    `${"a".repeat(255)}:${"t".repeat(128)}@${DIGEST}`,
  ])("with the image %s", (image) => {
    expect(specFaults({ image })).toEqual([]);
  });

  test.each<[string, Partial<Spec>]>([
    ["a key and a label value that are empty or long", { labels: { a: "", b: "v".repeat(1024) } }],
    ["a label that only contains a reserved prefix", { labels: { "my.sandbox.x": "" } }],
    ["64 labels", { labels: labels(64) }],
    ["a repeated environment key", { env: [env("A"), env("A")] }],
    ["no disk", { resources: { vcpus: 1, memoryMib: 1, diskSizeMib: 0 } }],
    ["equal limits", { rlimits: [limit(5n, 5n)] }],
    ["nested mounts", { mounts: mountsAt("/a", "/a/b", "/...", "/..a/b..") }],
    ["an empty override", { runtime: { cmd: {}, entrypoint: { values: [] } } }],
    ["an automatic init", { init: { cmd: "auto" } }],
    ["limits of 0", { lifecycle: { idleTimeoutSecs: 0n, maxDurationSecs: 0n } }],
    ["one port", rule({ ports: [{ start: 0, end: 0 }] })],
    ["a prefix", rule({ destination: { kind: { case: "cidr", value: "fd00::/8" } } })],
  ])("with %s", (_, spec) => {
    expect(specFaults(spec)).toEqual([]);
  });
});

describe("a create is refused, by path,", () => {
  test("without a spec", () => expect(createFaults({})).toEqual(["spec"]));

  test.each(["-a", ".a", "a b", "a/b", "ä", "a".repeat(129)])("for the name %j", (name) => {
    expect(createFaults({ name, spec: { image: "alpine" } })).toEqual(["name"]);
  });

  test.each(["", "ab", "a".repeat(64), "Abc", "-abc", "abc-", "a--b", "a_b"])(
    "for the slug %j",
    (slug) => expect(createFaults({ slug, spec: { image: "alpine" } })).toEqual(["slug"]),
  );

  test.each([
    "",
    " alpine",
    "Alpine",
    "a//b",
    "/a",
    "a/",
    "a:",
    "a:-",
    `a:${"t".repeat(129)}`,
    "a@sha256:00",
    `a@md5:${"0".repeat(32)}`,
    "a___b",
    "http://a/b",
    `a/${"b".repeat(254)}`,
    "-host/a",
  ])("for the image %j", (image) => {
    expect(specFaults({ image })).toEqual(["spec.image"]);
  });

  test.each<[string, Partial<Spec>]>([
    ["spec.env[1].key", { env: [env("A"), env("")] }],
    ["spec.env[0].key", { env: [env("A=B")] }],
    ["spec.env[0].key", { env: [env("A\0")] }],
    ["spec.env[0].key", { env: [env("MSB_A")] }],
    ["spec.env[0].value", { env: [env("A", "\0")] }],
    ['spec.labels[""]', { labels: { "": "v" } }],
    [`spec.labels["${"ä".repeat(65)}"]`, { labels: { ["ä".repeat(65)]: "v" } }],
    ['spec.labels["a"]', { labels: { a: "ä".repeat(513) } }],
    ['spec.labels["sandbox.a"]', { labels: { "sandbox.a": "" } }],
    ['spec.labels["microsandbox.a"]', { labels: { "microsandbox.a": "" } }],
    ['spec.labels["service."]', { labels: { "service.": "" } }],
    ["spec.labels", { labels: labels(65) }],
    ["spec.resources.vcpus", { resources: { vcpus: 0 } }],
    ["spec.resources.memory_mib", { resources: { memoryMib: 0 } }],
    ["spec.resources.disk_size_mib", { resources: { diskSizeMib: -1 } }],
    ["spec.runtime.cmd.values[0]", { runtime: { cmd: { values: ["\0"] } } }],
    ["spec.runtime.workdir", { runtime: { workdir: "a" } }],
    ["spec.runtime.log_level", { runtime: { logLevel: UNKNOWN } }],
    ['spec.runtime.scripts[""]', { runtime: { scripts: { "": "" } } }],
    ['spec.runtime.scripts["a/b"]', { runtime: { scripts: { "a/b": "" } } }],
    ['spec.runtime.scripts["."]', { runtime: { scripts: { ".": "" } } }],
    ['spec.runtime.scripts[".."]', { runtime: { scripts: { "..": "" } } }],
    ["spec.rlimits[0].resource", { rlimits: [{ ...limit(0n, 0n), resource: UNKNOWN }] }],
    ["spec.rlimits[0].resource", { rlimits: [{ soft: 0n, hard: 0n }] }],
    ["spec.rlimits[0]", { rlimits: [limit(2n, 1n)] }],
    ["spec.rlimits[0].soft", { rlimits: [limit(-1n, 1n)] }],
    ["spec.rlimits[0].hard", { rlimits: [limit(0n, 2n ** 53n)] }],
    ["spec.init.cmd", { init: { cmd: "sh" } }],
    ["spec.init.env[0].key", { init: { cmd: "auto", env: [env("")] } }],
    ["spec.lifecycle.idle_timeout_secs", { lifecycle: { idleTimeoutSecs: -1n } }],
    ["spec.lifecycle.max_duration_secs", { lifecycle: { maxDurationSecs: 2n ** 53n } }],
    ["spec.pull_policy", { pullPolicy: UNKNOWN }],
    ["spec.security_profile", { securityProfile: UNKNOWN }],
    ["spec.registry.mode", { registry: {} }],
    [
      "spec.registry.specific.credential_id",
      { registry: { mode: { case: "specific", value: {} } } },
    ],
  ])("at %s", (path, spec) => {
    expect(specFaults(spec)).toEqual([path]);
  });
});

describe("mounts are refused", () => {
  test.each(["", "a", "a/b", "/", "//", "/.", "/./", "/..", "/a/../b", "/a:b", "/a;b", "/a,b"])(
    "at the guest path %j",
    (guest) => expect(specFaults({ mounts: mountsAt(guest) })).toEqual(["spec.mounts[0].guest"]),
  );

  test.each([
    ["/a", "/a"],
    ["/a/b", "//a/./b/"],
  ])("twice at one path: %s and %s", (first, second) => {
    expect(specFaults({ mounts: mountsAt(first, second) })).toEqual(["spec.mounts"]);
  });

  test.each<[string, NonNullable<Spec["mounts"]>[number]["source"]]>([
    ["source", undefined],
    ["bind.host", { case: "bind", value: { host: "" } }],
    ["bind.host", { case: "bind", value: { host: "a/../../b" } }],
    ["bind.quota_mib", { case: "bind", value: { host: "a", quotaMib: -1 } }],
    [
      "bind.stat_virtualization",
      { case: "bind", value: { host: "a", statVirtualization: UNKNOWN } },
    ],
    ["bind", { case: "bind", value: { host: "a", ...offAndMirror() } }],
    ["named.name", { case: "named", value: {} }],
    ["named", { case: "named", value: { name: "v", ...offAndMirror() } }],
    ["tmpfs.size_mib", { case: "tmpfs", value: { sizeMib: -1 } }],
    ["disk_image.format", { case: "diskImage", value: { host: "a" } }],
    ["disk_image.host", { case: "diskImage", value: { format: DiskImageFormat.RAW } }],
  ])("at %s", (path, source) => {
    const mount = { guest: "/a", ...(source && { source }) };
    expect(specFaults({ mounts: [mount] })).toEqual([`spec.mounts[0].${path}`]);
  });
});

describe("a network is refused", () => {
  test.each<[string, object]>([
    ["direction", { direction: UNKNOWN }],
    ["direction", { direction: NetworkDirection.UNSPECIFIED }],
    ["action", { action: UNKNOWN }],
    ["action", { action: NetworkAction.UNSPECIFIED }],
    ["destination", { destination: undefined }],
    ["destination.kind", { destination: {} }],
    ["destination.cidr", destination("cidr", "10.0.0.0")],
    ["destination.cidr", destination("cidr", "10.0.0/8")],
    ["destination.cidr", destination("cidr", "10.0.0.0/33")],
    ["destination.domain", destination("domain", "")],
    ["destination.domain_suffix", destination("domainSuffix", "")],
    ["destination.group", destination("group", UNKNOWN)],
    ["ports[0]", { ports: [{ start: 2, end: 1 }] }],
    ["ports[0].end", { ports: [{ start: 1, end: 65_536 }] }],
    ["ports[0].start", { ports: [{ start: -1, end: 1 }] }],
    ["protocols[0]", { protocols: [UNKNOWN] }],
  ])("at policy.rules[0].%s", (path, part) => {
    expect(specFaults(rule(part))).toEqual([`spec.network.policy.rules[0].${path}`]);
  });

  test.each<[string, object]>([
    ["env_var", { envVar: "" }],
    ["env_var", { envVar: "A=B" }],
    ["placeholder", { placeholder: "" }],
    ["source.kind", { source: {} }],
    ["allowed_hosts[0].kind", { allowedHosts: [{}] }],
    ["allowed_hosts[0].exact", { allowedHosts: [{ kind: { case: "exact", value: "" } }] }],
    ["on_violation.kind", { onViolation: {} }],
  ])("at secrets.entries[0].%s", (path, part) => {
    expect(specFaults(secret(part))).toEqual([`spec.network.secrets.entries[0].${path}`]);
  });

  test.each<[string, object]>([
    ["max_connections", { maxConnections: -1n }],
    ["policy.default_egress", { policy: { defaultEgress: UNKNOWN } }],
    ["policy.default_ingress", { policy: { defaultIngress: UNKNOWN } }],
  ])("at %s", (path, network) => {
    expect(specFaults({ network })).toEqual([`spec.network.${path}`]);
  });
});

describe("patches are refused", () => {
  const text = { case: "text", value: { path: "/a" } } as const;

  test("without a kind", () => {
    expect(specFaults({ patches: [{ kind: text }, {}] })).toEqual(["spec.patches[1].kind"]);
  });

  test.each<[string, string]>([
    ["text", "path"],
    ["file", "path"],
    ["mkdir", "path"],
    ["remove", "path"],
    ["append", "path"],
    ["copyFile", "dst"],
    ["copyDir", "dst"],
    ["symlink", "link"],
  ])("for a bad path of %s", (kind, field) => {
    for (const path of ["", "a", "/", "/.", "/a/../b"]) {
      const value = { src: "a", target: "a", [field]: path };
      const snake = kind.replace("F", "_f").replace("D", "_d");
      const patches = [{ kind: { case: kind, value } }] as Spec["patches"] & object;
      expect(specFaults({ patches })).toEqual([`spec.patches[0].${snake}.${field}`]);
    }
  });

  test.each([-1, 0o10000])("for the mode %d", (mode) => {
    const kind = { case: "text", value: { path: "/a", mode } } as const;
    expect(specFaults({ patches: [{ kind }] })).toEqual(["spec.patches[0].text.mode"]);
  });
});

describe("other requests are refused", () => {
  test.each<[string, DescMessage, object]>([
    ["key", GetSandboxRequestSchema, {}],
    ["key.key", GetSandboxRequestSchema, { key: {} }],
    ["key.id", GetSandboxRequestSchema, { key: { key: { case: "id", value: "1" } } }],
    ["page_size", ListSandboxesRequestSchema, { pageSize: 101 }],
    ["page_size", ListSandboxesRequestSchema, { pageSize: -1 }],
    ["statuses[0]", ListSandboxesRequestSchema, { statuses: [0] }],
    ["statuses[0]", ListSandboxesRequestSchema, { statuses: [UNKNOWN] }],
    ["name", RenameSandboxRequestSchema, { key: byId(), name: "" }],
    ["slug", RenameSandboxRequestSchema, { key: byId(), slug: "" }],
    ["observation", ReportRequestSchema, { sandboxId: ID, generation: 1 }],
    ["key_sha256", AuthenticateKeyRequestSchema, { keySha256: new Uint8Array(31) }],
  ])("at %s", (path, schema, request) => {
    expect(faultsOf(schema, request as MessageInitShape<DescMessage>)).toEqual([path]);
  });
});

function env(key: string, value = "") {
  return { key, value };
}

function labels(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, ""]));
}

function limit(soft: bigint, hard: bigint) {
  return { resource: RlimitResource.NOFILE, soft, hard };
}

function destination(kind: string, value: unknown) {
  return { destination: { kind: { case: kind, value } } };
}

function offAndMirror() {
  return {
    statVirtualization: StatVirtualization.OFF,
    hostPermissions: HostPermissions.MIRROR,
  };
}

function byId() {
  return { key: { case: "id", value: ID } } as const;
}
