import { isIPv4 } from "node:net";
import type { CreateSandboxRequest } from "../../../gateway/v1/sandboxes/schema/create.ts";

type Request = CreateSandboxRequest;
type Given<K extends keyof Request> = NonNullable<Request[K]>;

/**
 * What api.md 2.3 says a sandbox made of this request shows as its spec, where a service stores it
 * as it came. Written apart from the code it checks.
 */
export function expectedSpec(request: Request) {
  const { resources, runtime, network, lifecycle } = request;
  return {
    image: request.image?.reference,
    resources: {
      vcpus: resources?.vcpus ?? 1,
      memory_mib: resources?.memory_mib ?? 512,
      disk_size_mib: resources?.disk_size_mib ?? null,
    },
    runtime: {
      ...{ cmd: null, entrypoint: null, shell: null, user: null, workdir: null, log_level: null },
      ...runtime,
      scripts: runtime?.scripts ?? {},
      hostname: null,
      metrics_sample_interval_ms: 1000,
      disable_metrics_sample: false,
    },
    env: request.env ?? [],
    labels: request.labels ?? {},
    rlimits: (request.rlimits ?? []).map(({ resource, soft, hard }) => ({
      resource: pascal(resource),
      soft,
      hard,
    })),
    lifecycle: {
      ephemeral: lifecycle?.ephemeral ?? false,
      idle_timeout_secs: lifecycle?.idle_timeout_secs ?? null,
      max_duration_secs: lifecycle?.max_duration_secs ?? null,
    },
    mounts: (request.mounts ?? []).map(mount),
    network: {
      enabled: network?.enabled ?? true,
      ports: [],
      trust_host_cas: false,
      dns: null,
      interface: null,
      max_connections: network?.max_connections ?? null,
      policy: policy(network?.policy),
      secrets: secrets(network?.secrets),
      tls: null,
    },
  };
}

function mount(given: Given<"mounts">[number]) {
  const { type, guest, options } = given;
  const flags = { nodev: false, noexec: false, nosuid: false, readonly: false };
  for (const flag of ["nodev", "noexec", "nosuid", "readonly"] as const)
    flags[flag] = options?.[flag] ?? false;
  const shared = { type: pascal(type), guest, options: flags };
  switch (type) {
    case "bind":
      return { ...shared, ...sharing(given), quota_mib: given.quota_mib ?? null };
    case "named":
      return { ...shared, ...sharing(given) };
    case "tmpfs":
      return { ...shared, size_mib: given.size_mib ?? null };
    case "disk_image":
      return { ...shared, format: pascal(given.format), fstype: given.fstype ?? null };
  }
}

function sharing(given: Given<"mounts">[number] & { type: "bind" | "named" }) {
  return {
    stat_virtualization: given.stat_virtualization ?? "strict",
    host_permissions: given.host_permissions ?? "private",
  };
}

function policy(given: Given<"network">["policy"]) {
  if (!given) return null;
  return {
    default_egress: given.default_egress ?? "deny",
    default_ingress: given.default_ingress ?? "deny",
    rules: (given.rules ?? []).map((rule) => ({
      direction: rule.direction,
      destination: destination(rule.destination),
      action: rule.action,
      ports: rule.ports ?? [],
      protocols: rule.protocols ?? [],
    })),
  };
}

function destination(given: string | Record<string, string>) {
  if (typeof given === "string" || !given.cidr || given.cidr.includes("/")) return given;
  return { cidr: `${given.cidr}/${isIPv4(given.cidr) ? 32 : 128}` };
}

function secrets(given: Given<"network">["secrets"]) {
  return (given?.entries ?? []).map((entry) => ({
    env_var: entry.env_var,
    placeholder: entry.placeholder,
    allowed_hosts: entry.allowed_hosts ?? [],
    injection: {
      headers: entry.injection?.headers ?? true,
      basic_auth: entry.injection?.basic_auth ?? true,
      query_params: entry.injection?.query_params ?? false,
      body: entry.injection?.body ?? false,
    },
    on_violation: entry.on_violation ?? given?.on_violation ?? { type: "block_and_log" },
  }));
}

/** `disk_image` is `DiskImage`. */
function pascal(word: string): string {
  return word.replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
