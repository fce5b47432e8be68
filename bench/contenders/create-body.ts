import type {
  EnvVar,
  NetworkPolicy,
  Rlimit,
  SandboxSpec,
} from "../../services/sandbox/domain/spec.ts";

const text = { type: "string", maxLength: 4096 };
const nullable = (type: string) => ({ type: [type, "null"] });
const list = (items: object) => ({ type: "array", items, maxItems: 1000 });
const object = (properties: object, required: string[] = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const map = { type: "object", additionalProperties: text, maxProperties: 64 };
const action = { enum: ["allow", "deny"] };
const port = { type: "integer", minimum: 0, maximum: 65535 };

/** What the bench's creates use of the public request; anything else is refused. */
export const createBody = object(
  {
    name: { type: "string", pattern: "^([A-Za-z0-9][A-Za-z0-9._-]{0,127})?$" },
    image: object({ type: { const: "oci" }, reference: { ...text, minLength: 1 } }, [
      "type",
      "reference",
    ]),
    env: list(
      object({ key: { ...text, pattern: "^(?!MSB_)[^=\\0]+$" }, value: text }, ["key", "value"]),
    ),
    labels: map,
    resources: object({
      vcpus: { type: "integer", minimum: 1, maximum: 1024 },
      memory_mib: { type: "integer", minimum: 1 },
      disk_size_mib: nullable("integer"),
    }),
    runtime: object({
      cmd: { ...list(text), type: ["array", "null"] },
      entrypoint: { ...list(text), type: ["array", "null"] },
      shell: nullable("string"),
      user: nullable("string"),
      workdir: { ...nullable("string"), pattern: "^/" },
      scripts: map,
    }),
    rlimits: list(
      object(
        {
          resource: { enum: ["nofile", "nproc", "core", "memlock"] },
          soft: { type: "integer", minimum: 0 },
          hard: { type: "integer", minimum: 0 },
        },
        ["resource", "soft", "hard"],
      ),
    ),
    mounts: list(
      object(
        {
          type: { const: "tmpfs" },
          guest: { ...text, pattern: "^/[^:;,]+$" },
          size_mib: { type: ["integer", "null"], minimum: 1 },
        },
        ["type", "guest"],
      ),
    ),
    network: object({
      enabled: { type: "boolean" },
      strict: { type: "boolean" },
      policy: object({
        default_egress: action,
        default_ingress: action,
        rules: list(
          object(
            {
              direction: { enum: ["egress", "ingress", "any"] },
              destination: {
                anyOf: [
                  { const: "any" },
                  object({ cidr: text }, ["cidr"]),
                  object({ domain: text }, ["domain"]),
                  object({ domain_suffix: text }, ["domain_suffix"]),
                ],
              },
              action,
              ports: list(object({ start: port, end: port }, ["start", "end"])),
              protocols: list({ enum: ["tcp", "udp", "icmpv4", "icmpv6"] }),
            },
            ["direction", "destination", "action"],
          ),
        ),
      }),
    }),
    lifecycle: object({
      ephemeral: { type: "boolean" },
      idle_timeout_secs: nullable("integer"),
      max_duration_secs: nullable("integer"),
    }),
  },
  ["image"],
);

type Destination = "any" | Record<string, string>;

export interface CreateBody {
  name?: string;
  image: { reference: string };
  env?: EnvVar[];
  labels?: Record<string, string>;
  resources?: { vcpus?: number; memory_mib?: number; disk_size_mib?: number | null };
  runtime?: Record<"cmd" | "entrypoint", string[] | null> &
    Record<"shell" | "user" | "workdir", string | null> & { scripts?: Record<string, string> };
  rlimits?: Rlimit[];
  mounts?: { guest: string; size_mib?: number | null }[];
  network?: {
    enabled?: boolean;
    strict?: boolean;
    policy?: {
      default_egress?: "allow" | "deny";
      default_ingress?: "allow" | "deny";
      rules?: (Omit<NetworkPolicy["rules"][number], "destination"> & {
        destination: Destination;
      })[];
    };
  };
  lifecycle?: {
    ephemeral?: boolean;
    idle_timeout_secs?: number | null;
    max_duration_secs?: number | null;
  };
}

const NO_OPTIONS = { nodev: false, noexec: false, nosuid: false, readonly: false };

/** The form in which a spec is stored, every default filled in. */
export function storedSpec(body: CreateBody): SandboxSpec {
  const { resources, runtime, network, lifecycle } = body;
  return {
    image: body.image.reference,
    resources: {
      vcpus: resources?.vcpus ?? 1,
      memoryMib: resources?.memory_mib ?? 512,
      diskSizeMib: resources?.disk_size_mib ?? null,
    },
    runtime: {
      cmd: runtime?.cmd ?? null,
      entrypoint: runtime?.entrypoint ?? null,
      shell: runtime?.shell ?? null,
      user: runtime?.user ?? null,
      workdir: runtime?.workdir ?? null,
      logLevel: null,
      scripts: runtime?.scripts ?? {},
    },
    env: [...new Map((body.env ?? []).map((item) => [item.key, item])).values()],
    labels: body.labels ?? {},
    rlimits: [...new Map((body.rlimits ?? []).map((item) => [item.resource, item])).values()],
    mounts: (body.mounts ?? []).map(({ guest, size_mib = null }) => ({
      type: "tmpfs",
      guest,
      options: NO_OPTIONS,
      sizeMib: size_mib,
    })),
    network: {
      enabled: network?.enabled ?? true,
      policy: network?.policy ? storedPolicy(network.policy) : null,
      secrets: null,
      maxConnections: null,
      strict: network?.strict ?? false,
    },
    init: null,
    pullPolicy: "if_missing",
    securityProfile: "default",
    lifecycle: {
      ephemeral: lifecycle?.ephemeral ?? false,
      idleTimeoutSecs: lifecycle?.idle_timeout_secs ?? null,
      maxDurationSecs: lifecycle?.max_duration_secs ?? null,
    },
    registry: { mode: "auto" },
  };
}

function storedPolicy(
  policy: NonNullable<NonNullable<CreateBody["network"]>["policy"]>,
): NetworkPolicy {
  return {
    defaultEgress: policy.default_egress ?? "deny",
    defaultIngress: policy.default_ingress ?? "deny",
    rules: (policy.rules ?? []).map((rule) => ({
      direction: rule.direction,
      destination: storedDestination(rule.destination),
      action: rule.action,
      ports: rule.ports ?? [],
      protocols: rule.protocols ?? [],
    })),
  };
}

function storedDestination(
  destination: Destination,
): NetworkPolicy["rules"][number]["destination"] {
  if (destination === "any") return { kind: "any" };
  const [[kind, value] = ["any", ""]] = Object.entries(destination);
  // The schema lets only kinds in that there are.
  return { kind, value } as NetworkPolicy["rules"][number]["destination"];
}
