import fc from "fast-check";
import type { CreateSandboxRequest } from "../../../gateway/v1/sandboxes/schema/create.ts";

/** Any of a field's values, or null, or the field left out. */
function fields<T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) {
  const orNull = Object.entries<fc.Arbitrary<unknown>>(model).map(([key, value]) => [
    key,
    fc.option(value, { nil: null, freq: 4 }),
  ]);
  const record = fc.record(Object.fromEntries(orNull), { requiredKeys: [] });
  // Built key by key from `model`, which the compiler cannot follow.
  return record as fc.Arbitrary<{ [K in keyof T]?: T[K] | null }>;
}

const flag = fc.boolean();
const int32 = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const size = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const int64 = fc.maxSafeNat();
const oneOf = fc.constantFrom;
const text = fc.string({ unit: "grapheme", maxLength: 12 }).filter((s) => !s.includes("\0"));
const full = text.filter((s) => s !== "");
const word = fc.stringMatching(/^[a-z][a-z0-9]{0,9}$/);
const list = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 4 });
const key = word.map((s) => s.toUpperCase());
const path = fc.array(word, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join("/")}`);
const domain = fc.array(word, { minLength: 2, maxLength: 3 }).map((parts) => parts.join("."));
const reference = fc
  .tuple(domain, word, fc.option(word, { nil: undefined }))
  .map(([host, name, tag]) => `${host}/${name}${tag ? `:${tag}` : ""}`);

const options = fields({ nodev: flag, noexec: flag, nosuid: flag, readonly: flag });
// Off and mirror exclude one another.
const sharing = fc.oneof(
  fields({
    stat_virtualization: oneOf("strict", "relaxed"),
    host_permissions: oneOf("private", "mirror"),
  }),
  fields({ stat_virtualization: oneOf("off"), host_permissions: oneOf("private") }),
);
const merge = <A extends object, B extends object>(a: fc.Arbitrary<A>, b: fc.Arbitrary<B>) =>
  fc.tuple(a, b).map(([left, right]) => ({ ...left, ...right }));
const mounted = merge(fc.record({ guest: path }), fields({ options }));

const mount = fc.oneof(
  merge(
    merge(mounted, sharing),
    merge(
      fc.record({ type: fc.constant("bind" as const), host: path }),
      fields({ quota_mib: int32 }),
    ),
  ),
  merge(merge(mounted, sharing), fc.record({ type: fc.constant("named" as const), name: word })),
  merge(
    mounted,
    merge(fc.record({ type: fc.constant("tmpfs" as const) }), fields({ size_mib: int32 })),
  ),
  merge(
    mounted,
    merge(
      fc.record({
        type: fc.constant("disk_image" as const),
        host: path,
        format: oneOf("qcow2", "raw", "vmdk"),
      }),
      fields({ fstype: word }),
    ),
  ),
);
const mounts = fc.uniqueArray(mount, { maxLength: 4, selector: ({ guest }) => guest });

const byte = fc.integer({ min: 0, max: 255 });
const address = fc.tuple(byte, byte).map(([a, b]) => `${a}.${b}.0.0`);
const destination = fc.oneof(
  fc.constant("any" as const),
  fc.record({
    cidr: fc.oneof(
      address.map((a) => `${a}/16`),
      address,
      fc.constant("2001:db8::/32"),
    ),
  }),
  fc.record({ domain }),
  fc.record({ domain_suffix: domain }),
  fc.record({
    group: oneOf("public", "loopback", "private", "link_local", "metadata", "multicast", "host"),
  }),
);
const port = fc.integer({ min: 0, max: 65_535 });
const ports = list(
  fc.tuple(port, port).map(([a, b]) => ({ start: Math.min(a, b), end: Math.max(a, b) })),
);
const action = oneOf("allow", "deny");
const rule = merge(
  fc.record({ direction: oneOf("egress", "ingress", "any"), destination, action }),
  fields({ ports, protocols: list(oneOf("tcp", "udp", "icmpv4", "icmpv6")) }),
);
const policy = fields({ default_egress: action, default_ingress: action, rules: list(rule) });

const host = fc.oneof(
  fc.record({ type: fc.constant("exact" as const), value: domain }),
  fc.record({ type: fc.constant("wildcard" as const), value: domain.map((d) => `*.${d}`) }),
  fc.record({ type: fc.constant("any" as const) }),
);
const violation = fc.oneof(
  fc.record({ type: fc.constant("block" as const) }),
  fc.record({ type: fc.constant("block_and_log" as const) }),
  fc.record({ type: fc.constant("block_and_terminate" as const) }),
  fc.record({ type: fc.constant("passthrough" as const), hosts: list(host) }),
);
const source = fc.oneof(
  fc.record({ type: fc.constant("env" as const), var: key }),
  fc.record({ type: fc.constant("store" as const), reference: full }),
);
const secret = merge(
  fc.record({ env_var: key, placeholder: full }),
  fields({
    value: text,
    source,
    allowed_hosts: list(host),
    injection: fields({ headers: flag, basic_auth: flag, query_params: flag, body: flag }),
    on_violation: violation,
    require_tls_identity: flag,
  }),
);
const secrets = fields({ entries: list(secret), on_violation: violation });

const mode = fc.integer({ min: 0, max: 0o7777 });
const writing = fields({ mode, replace: flag });
const patch = fc.oneof(
  merge(fc.record({ type: fc.constant("text" as const), path, content: text }), writing),
  merge(fc.record({ type: fc.constant("file" as const), path, content: list(byte) }), writing),
  merge(fc.record({ type: fc.constant("copy_file" as const), src: path, dst: path }), writing),
  merge(
    fc.record({ type: fc.constant("copy_dir" as const), src: path, dst: path }),
    fields({ replace: flag }),
  ),
  merge(
    fc.record({ type: fc.constant("symlink" as const), target: full, link: path }),
    fields({ replace: flag }),
  ),
  merge(fc.record({ type: fc.constant("mkdir" as const), path }), fields({ mode })),
  fc.record({ type: fc.constant("remove" as const), path }),
  fc.record({ type: fc.constant("append" as const), path, content: text }),
);

const rlimit = fc
  .tuple(oneOf("cpu", "fsize", "nofile", "as", "rttime", "sigpending"), int64, int64)
  .map(([resource, a, b]) => ({ resource, soft: Math.min(a, b), hard: Math.max(a, b) }));
const registry = fc.oneof(
  fc.record({ mode: fc.constant("auto" as const) }),
  fc.record({ mode: fc.constant("anonymous" as const) }),
  fc.record({ mode: fc.constant("specific" as const), credential_id: full }),
  fc.record({ mode: fc.constant("inline" as const), username: text, password: text }),
);

/** Creates that are valid, with any fields present, null or left out. */
export const createBody: fc.Arbitrary<CreateSandboxRequest> = merge(
  fc.record({ image: fc.record({ type: fc.constant("oci" as const), reference }) }),
  fields({
    name: word,
    slug: fc.stringMatching(/^[a-z0-9]{3,20}$/),
    env: list(fc.record({ key, value: text })),
    labels: fc.dictionary(word, text, { maxKeys: 4 }),
    resources: fields({ vcpus: size, memory_mib: size, disk_size_mib: int32 }),
    runtime: fields({
      cmd: list(text),
      entrypoint: list(text),
      shell: text,
      user: text,
      workdir: path,
      log_level: oneOf("error", "warn", "info", "debug", "trace"),
      scripts: fc.dictionary(word, text, { maxKeys: 3 }),
    }),
    rlimits: list(rlimit),
    mounts,
    network: fields({
      enabled: flag,
      policy,
      secrets,
      max_connections: int64,
      strict: flag,
    }),
    patches: list(patch),
    init: merge(
      fc.record({ cmd: fc.oneof(path, fc.constant("auto")) }),
      fields({ args: list(text), env: list(fc.tuple(key, text)) }),
    ),
    pull_policy: oneOf("if_missing", "always", "never"),
    security_profile: oneOf("default", "restricted"),
    lifecycle: fields({ ephemeral: flag, idle_timeout_secs: int64, max_duration_secs: int64 }),
    registry,
  }),
);
