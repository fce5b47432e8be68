import type { CreateSandboxRequest } from "./schema/create.ts";
import type { Sandbox } from "./schema/sandbox.ts";

export const exampleRequest: CreateSandboxRequest = {
  name: "build-42",
  image: { type: "oci", reference: "docker.io/library/alpine:3.20" },
  env: [{ key: "CI", value: "true" }],
  labels: { team: "build" },
  resources: { vcpus: 1, memory_mib: 512 },
  runtime: { cmd: ["sh", "-c", "make test"], workdir: "/src" },
  rlimits: [{ resource: "nofile", soft: 1024, hard: 4096 }],
  mounts: [{ type: "tmpfs", guest: "/src", size_mib: 64 }],
  lifecycle: { ephemeral: true, max_duration_secs: 3600 },
};

export const exampleSandbox: Sandbox = {
  id: "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44",
  org_id: "019a9f2d-11c4-7a0b-8e21-5d5b9a7c6e10",
  name: "build-42",
  slug: "brave-otter-42",
  status: "running",
  status_reason: null,
  ephemeral: true,
  created_at: "2026-11-21T08:15:30.120Z",
  started_at: "2026-11-21T08:15:31.480Z",
  stopped_at: null,
  last_failure_message: null,
  spec: {
    image: "docker.io/library/alpine:3.20",
    resources: { vcpus: 1, memory_mib: 512, disk_size_mib: null },
    runtime: {
      cmd: ["sh", "-c", "make test"],
      entrypoint: null,
      shell: null,
      user: null,
      workdir: "/src",
      log_level: null,
      scripts: {},
      hostname: null,
      metrics_sample_interval_ms: 1000,
      disable_metrics_sample: false,
    },
    env: [{ key: "CI", value: "true" }],
    labels: { team: "build" },
    rlimits: [{ resource: "Nofile", soft: 1024, hard: 4096 }],
    lifecycle: { ephemeral: true, idle_timeout_secs: null, max_duration_secs: 3600 },
    mounts: [
      {
        type: "Tmpfs",
        guest: "/src",
        options: { nodev: false, noexec: false, nosuid: false, readonly: false },
        size_mib: 64,
      },
    ],
    network: {
      enabled: true,
      ports: [],
      trust_host_cas: false,
      dns: null,
      interface: null,
      max_connections: null,
      policy: null,
      secrets: [],
      tls: null,
    },
  },
};

export const exampleCreated: Sandbox = {
  ...exampleSandbox,
  status: "created",
  started_at: null,
};

export const exampleStarting: Sandbox = {
  ...exampleCreated,
  status: "starting",
  status_reason: "scheduling",
};

export const exampleStopping: Sandbox = { ...exampleSandbox, status: "stopping" };

export const exampleLogs = `id: AwEAAAAAAAAAeJPvDJwB6hgBAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAA==
event: log
data: {"source":"stdout","ts":"2026-11-21T08:15:31.204117368Z","text":"hello\\n"}

event: end
data: {}

`;
