import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Body,
  bind,
  body,
  fullBody,
  rule,
  secret,
  tmpfs,
  withMounts,
  withNetwork,
  withPatches,
  withRules,
  withSecrets,
} from "./support/bodies.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

const guest = (path: unknown): [string, Body, string[]] => [
  `mount point ${JSON.stringify(path)}`,
  withMounts(tmpfs({ guest: path })),
  ["mounts[0].guest"],
];
const hostPath = (host: unknown): [string, Body, string[]] => [
  `host path ${JSON.stringify(host)}`,
  withMounts(bind({ host })),
  ["mounts[0].host"],
];
const destination = (given: unknown, ...at: string[]): [string, Body, string[]] => [
  `destination ${JSON.stringify(given)}`,
  withRules(rule({ destination: given })),
  at.map((field) => `network.policy.rules[0].destination${field}`),
];
const host = (given: unknown, ...at: string[]): [string, Body, string[]] => [
  `host pattern ${JSON.stringify(given)}`,
  withSecrets(secret({ allowed_hosts: [given] })),
  at.map((field) => `network.secrets.entries[0].allowed_hosts[0]${field}`),
];
const patch = (given: Body, ...fields: string[]): [string, Body, string[]] => [
  `patch ${JSON.stringify(given)}`,
  withPatches(given),
  fields.map((field) => `patches[0]${field}`),
];
const entry = "network.secrets.entries[0]";
const first = "network.policy.rules[0]";

const refused: [string, Body, string[]][] = [
  ["mount as text", withMounts("/data"), ["mounts[0]"]],
  ["mount null", withMounts(null), ["mounts[0]"]],
  ["mount without type", withMounts({ guest: "/a" }), ["mounts[0].type"]],
  ["mount of another type", withMounts(tmpfs({ type: "Tmpfs" })), ["mounts[0].type"]],
  ["mount type that is a number", withMounts(tmpfs({ type: 1 })), ["mounts[0].type"]],
  ["bind without fields", withMounts({ type: "bind" }), ["mounts[0].host", "mounts[0].guest"]],
  ["named without fields", withMounts({ type: "named" }), ["mounts[0].name", "mounts[0].guest"]],
  [
    "disk without fields",
    withMounts({ type: "disk_image" }),
    ["mounts[0].host", "mounts[0].guest", "mounts[0].format"],
  ],
  ["guest null", withMounts(tmpfs({ guest: null })), ["mounts[0].guest"]],
  ...["", "data", "/", "//", "/./", "/a/../b", "/..", "/a:b", "/a;b", "/a,b", "/a\0", 1].map(guest),
  ...["", "a/../b", "..", "a\0", null].map(hostPath),
  [
    "a path of millions of slashes",
    withMounts(tmpfs({ guest: "/".repeat(5e6) })),
    ["mounts[0].guest"],
  ],
  [
    "a path longer than Linux opens",
    withMounts(tmpfs({ guest: `/${"é".repeat(2048)}` })),
    ["mounts[0].guest"],
  ],
  [
    "more mounts than are taken",
    withMounts(...Array.from({ length: 257 }, (_, i) => tmpfs({ guest: `/${i}` }))),
    ["mounts"],
  ],
  ["the same mount point twice", withMounts(tmpfs(), tmpfs()), ["mounts[1].guest"]],
  [
    "the same mount points, once canonical",
    withMounts(tmpfs({ guest: "/a/b" }), tmpfs(), tmpfs({ guest: "//a/./b/" }), bind()),
    ["mounts[2].guest", "mounts[3].guest"],
  ],
  [
    "mount of a named volume that is no name",
    withMounts({ type: "named", guest: "/a", name: "A" }),
    ["mounts[0].name"],
  ],
  [
    "mirror without virtualization",
    withMounts(bind({ stat_virtualization: "off", host_permissions: "mirror" })),
    ["mounts[0].host_permissions"],
  ],
  [
    "named mirror without virtualization",
    withMounts({
      type: "named",
      guest: "/a",
      name: "a",
      stat_virtualization: "off",
      host_permissions: "mirror",
    }),
    ["mounts[0].host_permissions"],
  ],
  [
    "other words",
    withMounts(bind({ stat_virtualization: "x", host_permissions: "y" })),
    ["mounts[0].stat_virtualization", "mounts[0].host_permissions"],
  ],
  [
    "negative sizes",
    withMounts(bind({ quota_mib: -1 }), tmpfs({ guest: "/b", size_mib: -1 })),
    ["mounts[0].quota_mib", "mounts[1].size_mib"],
  ],
  [
    "another format",
    withMounts({ type: "disk_image", host: "a", guest: "/a", format: "Qcow2" }),
    ["mounts[0].format"],
  ],
  ["unknown field in a mount", withMounts(tmpfs({ host: "/a" })), ["mounts[0].host"]],
  [
    "unknown field in options",
    withMounts(tmpfs({ options: { ro: true } })),
    ["mounts[0].options.ro"],
  ],
  [
    "option as text",
    withMounts(tmpfs({ options: { readonly: "true" } })),
    ["mounts[0].options.readonly"],
  ],

  ["network as a flag", withNetwork(false), ["network"]],
  ["unknown field in network", withNetwork({ ports: [] }), ["network.ports"]],
  ["enabled as text", withNetwork({ enabled: "yes" }), ["network.enabled"]],
  ["strict as a number", withNetwork({ strict: 1 }), ["network.strict"]],
  ["negative connections", withNetwork({ max_connections: -1 }), ["network.max_connections"]],
  [
    "another default",
    withNetwork({ policy: { default_egress: "drop" } }),
    ["network.policy.default_egress"],
  ],
  ["unknown field in policy", withNetwork({ policy: { egress: [] } }), ["network.policy.egress"]],
  [
    "rule without fields",
    withRules({}),
    [`${first}.direction`, `${first}.destination`, `${first}.action`],
  ],
  ["unknown field in a rule", withRules(rule({ comment: "" })), [`${first}.comment`]],
  [
    "other words in a rule",
    withRules(rule({ direction: "out", action: "drop" })),
    [`${first}.direction`, `${first}.action`],
  ],
  ["rule null", withRules(rule(), null), ["network.policy.rules[1]"]],
  destination(null, ""),
  destination("public", ""),
  destination({}, ""),
  destination({ cidr: "10.0.0.0/8", domain: "a.example" }, ""),
  destination({ any: true }, ".any"),
  destination({ cidr: null }, ".cidr"),
  destination({ cidr: "10.0.0.0/33" }, ".cidr"),
  destination({ cidr: "10.0.0/8" }, ".cidr"),
  destination({ cidr: "10.0.0.0/" }, ".cidr"),
  destination({ cidr: "10.0.0.0/08" }, ".cidr"),
  destination({ cidr: "10.0.0.0/8/8" }, ".cidr"),
  destination({ cidr: "2001:db8::/129" }, ".cidr"),
  destination({ cidr: "fe80::1%eth0/64" }, ".cidr"),
  destination({ cidr: "example.com" }, ".cidr"),
  destination({ domain: "" }, ".domain"),
  destination({ domain: "a b" }, ".domain"),
  destination({ domain: "*.example.com" }, ".domain"),
  destination({ domain: `${"a".repeat(64)}.example` }, ".domain"),
  destination({ domain_suffix: "..example" }, ".domain_suffix"),
  destination({ group: "internet" }, ".group"),
  [
    "port without fields",
    withRules(rule({ ports: [{}] })),
    [`${first}.ports[0].start`, `${first}.ports[0].end`],
  ],
  [
    "port beyond 65535",
    withRules(rule({ ports: [{ start: 1, end: 65_536 }] })),
    [`${first}.ports[0].end`],
  ],
  [
    "port range upside down",
    withRules(rule({ ports: [{ start: 2, end: 1 }] })),
    [`${first}.ports[0].start`],
  ],
  ["port as a number", withRules(rule({ ports: [80] })), [`${first}.ports[0]`]],
  [
    "unknown field in a port",
    withRules(rule({ ports: [{ start: 1, end: 1, x: 1 }] })),
    [`${first}.ports[0].x`],
  ],
  ["another protocol", withRules(rule({ protocols: ["tcp", "sctp"] })), [`${first}.protocols[1]`]],

  ["secret without fields", withSecrets({}), [`${entry}.env_var`, `${entry}.placeholder`]],
  [
    "secret with empty fields",
    withSecrets(secret({ env_var: "", placeholder: "" })),
    [`${entry}.env_var`, `${entry}.placeholder`],
  ],
  ["secret variable with =", withSecrets(secret({ env_var: "A=B" })), [`${entry}.env_var`]],
  ["unknown field in a secret", withSecrets(secret({ name: "x" })), [`${entry}.name`]],
  ["unknown field in secrets", withNetwork({ secrets: { items: [] } }), ["network.secrets.items"]],
  [
    "secret source without type",
    withSecrets(secret({ source: { var: "X" } })),
    [`${entry}.source.type`],
  ],
  [
    "secret source without variable",
    withSecrets(secret({ source: { type: "env" } })),
    [`${entry}.source.var`],
  ],
  [
    "secret source of the other kind",
    withSecrets(secret({ source: { type: "store", var: "X" } })),
    [`${entry}.source.reference`, `${entry}.source.var`],
  ],
  host("example.com", ""),
  host({ type: "glob", value: "*" }, ".type"),
  host({ type: "exact" }, ".value"),
  host({ type: "exact", value: "a b" }, ".value"),
  host({ type: "wildcard", value: "example.com" }, ".value"),
  host({ type: "any", value: "x" }, ".value"),
  [
    "another violation",
    withSecrets(secret({ on_violation: { type: "log" } })),
    [`${entry}.on_violation.type`],
  ],
  [
    "passthrough without hosts",
    withSecrets(secret({ on_violation: { type: "passthrough" } })),
    [`${entry}.on_violation.hosts`],
  ],
  [
    "violation for all",
    withNetwork({ secrets: { on_violation: "block" } }),
    ["network.secrets.on_violation"],
  ],
  [
    "injection",
    withSecrets(secret({ injection: { headers: 1, cookies: true } })),
    [`${entry}.injection.headers`, `${entry}.injection.cookies`],
  ],
  [
    "require_tls_identity",
    withSecrets(secret({ require_tls_identity: "no" })),
    [`${entry}.require_tls_identity`],
  ],

  patch({}, ".type"),
  patch({ type: "chmod" }, ".type"),
  patch({ type: "text" }, ".path", ".content"),
  patch({ type: "file" }, ".path", ".content"),
  patch({ type: "copy_file" }, ".src", ".dst"),
  patch({ type: "copy_dir" }, ".src", ".dst"),
  patch({ type: "symlink" }, ".target", ".link"),
  patch({ type: "mkdir" }, ".path"),
  patch({ type: "remove" }, ".path"),
  patch({ type: "append" }, ".path", ".content"),
  patch({ type: "mkdir", path: "a" }, ".path"),
  patch({ type: "mkdir", path: "/" }, ".path"),
  patch({ type: "mkdir", path: "/a/.." }, ".path"),
  patch({ type: "mkdir", path: "/a\0" }, ".path"),
  patch({ type: "mkdir", path: "/a", mode: -1 }, ".mode"),
  patch({ type: "mkdir", path: "/a", mode: 0o10000 }, ".mode"),
  patch({ type: "mkdir", path: "/a", replace: true }, ".replace"),
  patch({ type: "text", path: "/a", content: "", replace: "yes" }, ".replace"),
  patch({ type: "text", path: "/a", content: "\udfff" }, ".content"),
  patch({ type: "text", path: "/a", content: [1] }, ".content"),
  patch({ type: "file", path: "/a", content: "text" }, ".content"),
  patch(
    { type: "file", path: "/a", content: [0, 256, 1.5, -1, "1", null, 255] },
    ...[1, 2, 3, 4, 5].map((i) => `.content[${i}]`),
  ),
  patch({ type: "copy_file", src: "../a", dst: "b" }, ".src", ".dst"),
  patch({ type: "symlink", target: "", link: "/a" }, ".target"),
];

describe("a create is refused", () => {
  test.each(refused)("%s", async (_name, sent, paths) => {
    const answer = await gateway.call("POST", "/v1/sandboxes", sent);
    expect(faultPaths(answer).sort()).toEqual([...paths].sort());
  });
});

const nullOptions = { nodev: null, noexec: null, nosuid: null, readonly: null };

const accepted: [string, Body][] = [
  ["every field there is", fullBody],
  ["mount points below one another", withMounts(tmpfs({ guest: "/a/b" }), tmpfs({ guest: "/a" }))],
  ["odd but good paths", withMounts(tmpfs({ guest: "//a b/..c/./ü" }))],
  ["mirror where it may be", withMounts(bind({ host_permissions: "mirror" }))],
  ["the root of the host volume", withMounts(bind({ host: "/" }))],
  [
    "mount nulls",
    withMounts(
      bind({
        options: null,
        stat_virtualization: null,
        host_permissions: null,
        quota_mib: null,
      }),
      tmpfs({ guest: "/b", size_mib: null, options: nullOptions }),
      { type: "disk_image", host: "a", guest: "/c", format: "raw", fstype: null },
    ),
  ],
  [
    "network nulls",
    withNetwork({
      enabled: null,
      policy: null,
      secrets: null,
      max_connections: null,
      strict: null,
    }),
  ],
  [
    "policy nulls",
    withNetwork({
      policy: { default_egress: null, default_ingress: null, rules: null },
    }),
  ],
  ["rule nulls", withRules(rule({ ports: null, protocols: null }))],
  ["secrets nulls", withNetwork({ secrets: { entries: null, on_violation: null } })],
  [
    "secret nulls",
    withSecrets(
      secret({
        value: null,
        source: null,
        allowed_hosts: null,
        injection: null,
        on_violation: null,
        require_tls_identity: null,
      }),
      secret({
        injection: { headers: null, basic_auth: null, query_params: null, body: null },
      }),
    ),
  ],
  [
    "patch nulls",
    withPatches({ type: "text", path: "/a", content: "", mode: null, replace: null }),
  ],
  ["text with NUL in a file", withPatches({ type: "text", path: "/a", content: "\0" })],
  ["the same variable in two secrets", withSecrets(secret(), secret())],
  ["address alone as a prefix", withRules(rule({ destination: { cidr: "2001:db8::1" } }))],
  ["suffix with a dot", withRules(rule({ destination: { domain_suffix: ".example.com" } }))],
  [
    "host that is an address",
    withSecrets(secret({ allowed_hosts: [{ type: "exact", value: "192.0.2.1" }] })),
  ],
  ["labels beside mounts", body({ labels: { a: "b" }, mounts: [tmpfs()] })],
];

describe("a create is taken", () => {
  test.each(accepted)("%s", async (_name, sent) => {
    expect(await gateway.call("POST", "/v1/sandboxes", sent)).toMatchObject({ status: 200 });
  });
});
