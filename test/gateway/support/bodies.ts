/** A JSON object of any shape, as a client may send it. */
export type Body = Record<string, unknown>;

/** The smallest create that is valid, with `more` on top. */
export function body(more: Body = {}): Body {
  return { image: { type: "oci", reference: "alpine" }, ...more };
}

export const tmpfs = (more: Body = {}): Body => ({ type: "tmpfs", guest: "/data", ...more });
export const bind = (more: Body = {}): Body => ({
  type: "bind",
  host: "/src",
  guest: "/data",
  ...more,
});
export const rule = (more: Body = {}): Body => ({
  direction: "egress",
  destination: "any",
  action: "allow",
  ...more,
});
export const secret = (more: Body = {}): Body => ({
  env_var: "TOKEN",
  placeholder: "$TOKEN",
  ...more,
});

export const withMounts = (...mounts: unknown[]): Body => body({ mounts });
export const withPatches = (...patches: unknown[]): Body => body({ patches });
export const withNetwork = (network: unknown): Body => body({ network });
export const withRules = (...rules: unknown[]): Body => withNetwork({ policy: { rules } });
export const withSecrets = (...entries: unknown[]): Body => withNetwork({ secrets: { entries } });

/** A create that uses every field there is. */
export const fullBody: Body = {
  name: "Full.body_1",
  slug: "full-body-1",
  image: { type: "oci", reference: "registry.example.com:5000/team/app:1.2" },
  env: [
    { key: "A", value: "1" },
    { key: "B", value: "" },
  ],
  labels: { team: "build", "app.kubernetes.io/name": "x", constructor: "y" },
  resources: { vcpus: 2, memory_mib: 1024, disk_size_mib: 4096 },
  runtime: {
    cmd: ["a", "b"],
    entrypoint: [],
    shell: "/bin/bash",
    user: "1000:1000",
    workdir: "/work",
    log_level: "debug",
    scripts: { "run.sh": "#!/bin/sh\n" },
  },
  rlimits: [
    { resource: "nofile", soft: 1024, hard: 4096 },
    { resource: "as", soft: 0, hard: Number.MAX_SAFE_INTEGER },
  ],
  mounts: [
    {
      type: "bind",
      host: "/src",
      guest: "/bind",
      options: { nodev: true, noexec: true, nosuid: true, readonly: true },
      stat_virtualization: "relaxed",
      host_permissions: "mirror",
      quota_mib: 10,
    },
    { type: "named", name: "cache", guest: "/named", stat_virtualization: "off" },
    { type: "tmpfs", guest: "/tmpfs", size_mib: 64 },
    { type: "disk_image", host: "disk.img", guest: "/disk", format: "vmdk", fstype: "ext4" },
  ],
  network: {
    enabled: true,
    policy: {
      default_egress: "allow",
      default_ingress: "deny",
      rules: [
        rule({ ports: [{ start: 80, end: 443 }], protocols: ["tcp", "udp"] }),
        rule({ destination: { cidr: "10.0.0.0/8" }, direction: "ingress", action: "deny" }),
        rule({ destination: { cidr: "2001:db8::/32" }, protocols: ["icmpv4", "icmpv6"] }),
        rule({ destination: { cidr: "192.0.2.7" } }),
        rule({ destination: { domain: "example.com" }, direction: "any" }),
        rule({ destination: { domain_suffix: "example.org" } }),
        rule({ destination: { group: "link_local" } }),
      ],
    },
    secrets: {
      entries: [
        secret({
          value: "s3cr3t-value",
          source: { type: "env", var: "HOST_TOKEN" },
          allowed_hosts: [
            { type: "exact", value: "api.example.com" },
            { type: "wildcard", value: "*.example.com" },
            { type: "any" },
          ],
          injection: { headers: false, basic_auth: false, query_params: true, body: true },
          on_violation: { type: "passthrough", hosts: [{ type: "exact", value: "a.example" }] },
          require_tls_identity: false,
        }),
        secret({ env_var: "OTHER", source: { type: "store", reference: "vault/x" } }),
      ],
      on_violation: { type: "block_and_terminate" },
    },
    max_connections: 100,
    strict: true,
  },
  patches: [
    { type: "text", path: "/etc/a", content: "text", mode: 0o644, replace: true },
    { type: "file", path: "/etc/b", content: [0, 127, 255], mode: null, replace: false },
    { type: "copy_file", src: "a/b", dst: "/c", mode: 0o7777, replace: true },
    { type: "copy_dir", src: "/d", dst: "/e", replace: true },
    { type: "symlink", target: "../x", link: "/f", replace: true },
    { type: "mkdir", path: "/g", mode: 0o755 },
    { type: "remove", path: "/h" },
    { type: "append", path: "/i", content: "more" },
  ],
  init: { cmd: "/sbin/init", args: ["--x"], env: [["K", "V"]] },
  pull_policy: "always",
  security_profile: "restricted",
  lifecycle: { ephemeral: true, idle_timeout_secs: 60, max_duration_secs: 3600 },
  registry: { mode: "inline", username: "user", password: "registry-pass" },
};
