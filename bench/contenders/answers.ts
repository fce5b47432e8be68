import type {
  Mount,
  NetworkDestination,
  NetworkPolicy,
  SandboxSpec,
} from "../../services/sandbox/domain/spec.ts";
import type { Row } from "./store.ts";

/** A sandbox as the public contract has it: field by field, in the same order, so that answers are the same to the byte. */
export function publicSandbox(row: Row) {
  return {
    id: row.id,
    org_id: row.org_id,
    name: row.name,
    slug: row.slug,
    status: row.status,
    status_reason: row.status_reason,
    ephemeral: row.ephemeral,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    stopped_at: row.stopped_at?.toISOString() ?? null,
    last_failure_message: row.last_failure_message,
    spec: publicSpec(row.spec),
  };
}

function publicSpec({ image, resources, runtime, lifecycle, network, ...spec }: SandboxSpec) {
  return {
    image,
    resources: {
      vcpus: resources.vcpus,
      memory_mib: resources.memoryMib,
      disk_size_mib: resources.diskSizeMib,
    },
    runtime: {
      cmd: runtime.cmd,
      entrypoint: runtime.entrypoint,
      shell: runtime.shell,
      user: runtime.user,
      workdir: runtime.workdir,
      log_level: runtime.logLevel,
      scripts: runtime.scripts,
      hostname: null,
      metrics_sample_interval_ms: 1000,
      disable_metrics_sample: false,
    },
    env: spec.env.map(({ key, value }) => ({ key, value })),
    labels: spec.labels,
    rlimits: spec.rlimits.map(({ resource, soft, hard }) => ({
      resource: resource.charAt(0).toUpperCase() + resource.slice(1),
      soft,
      hard,
    })),
    lifecycle: {
      ephemeral: lifecycle.ephemeral,
      idle_timeout_secs: lifecycle.idleTimeoutSecs,
      max_duration_secs: lifecycle.maxDurationSecs,
    },
    mounts: spec.mounts.map(publicMount),
    network: {
      enabled: network.enabled,
      ports: [],
      trust_host_cas: false,
      dns: null,
      interface: null,
      max_connections: network.maxConnections,
      policy: network.policy && publicPolicy(network.policy),
      secrets: [],
      tls: null,
    },
  };
}

function publicMount(mount: Mount) {
  if (mount.type !== "tmpfs") throw new Error(`the bench has no mounts of type ${mount.type}`);
  const { nodev, noexec, nosuid, readonly } = mount.options;
  const options = { nodev, noexec, nosuid, readonly };
  return { type: "Tmpfs", guest: mount.guest, options, size_mib: mount.sizeMib };
}

function publicPolicy({ defaultEgress, defaultIngress, rules }: NetworkPolicy) {
  return {
    default_egress: defaultEgress,
    default_ingress: defaultIngress,
    rules: rules.map((rule) => ({
      direction: rule.direction,
      destination: publicDestination(rule.destination),
      action: rule.action,
      ports: rule.ports.map(({ start, end }) => ({ start, end })),
      protocols: rule.protocols,
    })),
  };
}

function publicDestination(destination: NetworkDestination) {
  return destination.kind === "any" ? "any" : { [destination.kind]: destination.value };
}

/** An error's envelope. */
export function envelope(code: string, message: string, details: unknown = null): string {
  return JSON.stringify({ error: { code, message, details } });
}
