/** A create as a client sends it, whose sandbox is shown with a spec of about 1.5 KB. */
export const BODY = {
  image: { type: "oci", reference: "registry.example.org/team/build:2026.11" },
  env: [
    { key: "CI", value: "true" },
    { key: "LANG", value: "C.UTF-8" },
    { key: "BUILD_CACHE", value: "/var/cache/build" },
    { key: "REPOSITORY", value: "https://git.example.org/team/project.git" },
  ],
  labels: { team: "build", stage: "test", branch: "feature-1234", owner: "somebody" },
  resources: { vcpus: 2, memory_mib: 2048 },
  runtime: {
    cmd: ["sh", "-ec", "git clone --depth 1 $REPOSITORY /src && cd /src && make test"],
    workdir: "/src",
    scripts: { prepare: "#!/bin/sh\nset -eu\nmkdir -p /src\n" },
  },
  rlimits: [{ resource: "nofile", soft: 1024, hard: 4096 }],
  mounts: [
    { type: "tmpfs", guest: "/src", size_mib: 256 },
    { type: "tmpfs", guest: "/var/cache/build", size_mib: 512 },
  ],
  network: {
    enabled: true,
    policy: {
      default_egress: "deny",
      default_ingress: "deny",
      rules: [
        {
          direction: "egress",
          destination: { domain_suffix: "example.org" },
          action: "allow",
          ports: [{ start: 443, end: 443 }],
          protocols: ["tcp"],
        },
        {
          direction: "egress",
          destination: { cidr: "10.0.0.0/8" },
          action: "deny",
          ports: [],
          protocols: [],
        },
      ],
    },
  },
  lifecycle: { ephemeral: false, max_duration_secs: 3600 },
};

/** The same as JSON of the service's message. */
export const SPEC_MESSAGE = {
  image: BODY.image.reference,
  env: BODY.env,
  labels: BODY.labels,
  resources: BODY.resources,
  runtime: {
    cmd: { values: BODY.runtime.cmd },
    workdir: BODY.runtime.workdir,
    scripts: BODY.runtime.scripts,
  },
  rlimits: [{ resource: "RLIMIT_RESOURCE_NOFILE", soft: 1024, hard: 4096 }],
  mounts: BODY.mounts.map(({ guest, size_mib }) => ({ guest, tmpfs: { size_mib } })),
  network: {
    enabled: true,
    policy: {
      default_egress: "NETWORK_ACTION_DENY",
      default_ingress: "NETWORK_ACTION_DENY",
      rules: [
        {
          direction: "NETWORK_DIRECTION_EGRESS",
          destination: { domain_suffix: "example.org" },
          action: "NETWORK_ACTION_ALLOW",
          ports: [{ start: 443, end: 443 }],
          protocols: ["NETWORK_PROTOCOL_TCP"],
        },
        {
          direction: "NETWORK_DIRECTION_EGRESS",
          destination: { cidr: "10.0.0.0/8" },
          action: "NETWORK_ACTION_DENY",
        },
      ],
    },
  },
  lifecycle: { ephemeral: false, max_duration_secs: 3600 },
};
