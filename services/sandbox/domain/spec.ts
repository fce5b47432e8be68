/** The resolved spec of a sandbox: every default filled in, every list in canonical order. Stored as it is. */
export interface SandboxSpec {
  image: string;
  resources: Resources;
  runtime: Runtime;
  env: EnvVar[];
  labels: Record<string, string>;
  rlimits: Rlimit[];
  mounts: Mount[];
  network: Network;
  init: Init | null;
  pullPolicy: "if_missing" | "always" | "never";
  securityProfile: "default" | "restricted";
  lifecycle: Lifecycle;
  registry: Registry;
}

/** What is sealed before it is stored, and what no answer, log or event ever shows. */
export interface SealedSpec {
  patches: Patch[];
  /** Of each secret, by its place in `network.secrets.entries`. */
  secrets: { value: string; source: SecretSource | null }[];
  registry: { username: string; password: string } | null;
}

export interface Resources {
  vcpus: number;
  memoryMib: number;
  diskSizeMib: number | null;
}

export interface Runtime {
  cmd: string[] | null;
  entrypoint: string[] | null;
  shell: string | null;
  user: string | null;
  workdir: string | null;
  logLevel: LogLevel | null;
  scripts: Record<string, string>;
}

export type LogLevel = "error" | "warn" | "info" | "debug" | "trace";

export interface EnvVar {
  key: string;
  value: string;
}

export interface Rlimit {
  resource: RlimitResource;
  soft: number;
  hard: number;
}

export const RLIMIT_RESOURCES = [
  "cpu",
  "fsize",
  "data",
  "stack",
  "core",
  "rss",
  "nproc",
  "nofile",
  "memlock",
  "as",
  "locks",
  "sigpending",
  "msgqueue",
  "nice",
  "rtprio",
  "rttime",
] as const;
export type RlimitResource = (typeof RLIMIT_RESOURCES)[number];

export interface MountOptions {
  nodev: boolean;
  noexec: boolean;
  nosuid: boolean;
  readonly: boolean;
}

interface MountBase {
  guest: string;
  options: MountOptions;
}

export type StatVirtualization = "strict" | "relaxed" | "off";
export type HostPermissions = "private" | "mirror";

export type Mount = MountBase &
  (
    | {
        type: "bind";
        host: string;
        statVirtualization: StatVirtualization;
        hostPermissions: HostPermissions;
        quotaMib: number | null;
      }
    | {
        type: "named";
        name: string;
        statVirtualization: StatVirtualization;
        hostPermissions: HostPermissions;
      }
    | { type: "tmpfs"; sizeMib: number | null }
    | { type: "disk_image"; host: string; format: "qcow2" | "raw" | "vmdk"; fstype: string | null }
  );

export interface Network {
  enabled: boolean;
  policy: NetworkPolicy | null;
  secrets: SecretsConfig | null;
  maxConnections: number | null;
  strict: boolean;
}

export type NetworkAction = "allow" | "deny";

export interface NetworkPolicy {
  defaultEgress: NetworkAction;
  defaultIngress: NetworkAction;
  rules: NetworkRule[];
}

export interface NetworkRule {
  direction: "egress" | "ingress" | "any";
  destination: NetworkDestination;
  action: NetworkAction;
  ports: { start: number; end: number }[];
  protocols: ("tcp" | "udp" | "icmpv4" | "icmpv6")[];
}

export type DestinationGroup =
  | "public"
  | "loopback"
  | "private"
  | "link_local"
  | "metadata"
  | "multicast"
  | "host";

export type NetworkDestination =
  | { kind: "any" }
  | { kind: "cidr"; value: string }
  | { kind: "domain"; value: string }
  | { kind: "domain_suffix"; value: string }
  | { kind: "group"; value: DestinationGroup };

export interface SecretsConfig {
  entries: Secret[];
  onViolation: ViolationAction;
}

export interface Secret {
  envVar: string;
  placeholder: string;
  allowedHosts: HostPattern[];
  injection: { headers: boolean; basicAuth: boolean; queryParams: boolean; body: boolean };
  /** The effective one: the entry's own, else the config's. */
  onViolation: ViolationAction;
  requireTlsIdentity: boolean;
}

export type SecretSource = { kind: "env"; value: string } | { kind: "store"; value: string };

export type HostPattern =
  | { kind: "exact"; value: string }
  | { kind: "wildcard"; value: string }
  | { kind: "any" };

export type ViolationAction =
  | { kind: "block" }
  | { kind: "block_and_log" }
  | { kind: "block_and_terminate" }
  | { kind: "passthrough"; hosts: HostPattern[] };

export type Patch =
  | { kind: "text"; path: string; content: string; mode: number | null; replace: boolean }
  /** Content in base64. */
  | { kind: "file"; path: string; content: string; mode: number | null; replace: boolean }
  | { kind: "copy_file"; src: string; dst: string; mode: number | null; replace: boolean }
  | { kind: "copy_dir"; src: string; dst: string; replace: boolean }
  | { kind: "symlink"; target: string; link: string; replace: boolean }
  | { kind: "mkdir"; path: string; mode: number | null }
  | { kind: "remove"; path: string }
  | { kind: "append"; path: string; content: string };

export interface Init {
  cmd: string;
  args: string[];
  env: EnvVar[];
}

export interface Lifecycle {
  ephemeral: boolean;
  idleTimeoutSecs: number | null;
  maxDurationSecs: number | null;
}

/** Inline credentials are sealed; only the mode is kept here. */
export type Registry =
  | { mode: "auto" }
  | { mode: "anonymous" }
  | { mode: "specific"; credentialId: string }
  | { mode: "inline" };

/** What an unset field of a request stands for. */
export const DEFAULTS = { vcpus: 1, memoryMib: 512 } as const;
