import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import type { Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

inBothShapes("every field of a create", (startProgram) => {
  let program: Program;

  beforeAll(async () => {
    program = await startProgram();
  });
  afterAll(() => program.close());

  const OPTIONS = { nodev: false, noexec: false, nosuid: false, readonly: false };

  /** Every field of a create. */
  const REQUEST = {
    name: "All.of-it_1",
    slug: "all-of-it-1",
    image: {
      type: "oci",
      reference: "registry.example.org:5000/team/tool:1.2@sha256:".concat("a".repeat(64)),
    },
    env: [
      { key: "TWICE", value: "first" },
      { key: "EMPTY", value: "" },
      { key: "TWICE", value: "läst ✓" },
    ],
    labels: { team: "core", "odd key/ü": "", "x.y": "z" },
    resources: { vcpus: 3, memory_mib: 2048, disk_size_mib: 10240 },
    runtime: {
      cmd: [],
      entrypoint: ["/bin/tool", "--flag"],
      shell: "/bin/bash",
      user: "1000:1000",
      workdir: "/srv",
      log_level: "debug",
      scripts: { "hello.sh": "#!/bin/sh\necho hi\n" },
    },
    rlimits: [
      { resource: "nofile", soft: 1, hard: 2 },
      { resource: "nofile", soft: 1024, hard: 9007199254740991 },
      { resource: "as", soft: 0, hard: 0 },
    ],
    mounts: [
      {
        type: "bind",
        host: "/data/secret-path",
        guest: "/mnt//data/./deep/",
        options: { readonly: true, nosuid: true },
        stat_virtualization: "relaxed",
        host_permissions: "mirror",
        quota_mib: 64,
      },
      { type: "tmpfs", guest: "/mnt", size_mib: 16, options: { noexec: true, nodev: true } },
      { type: "disk_image", host: "disk.img", guest: "/disk", format: "qcow2", fstype: "ext4" },
      { type: "named", name: "cache-1", guest: "/mnt/cache/", options: { noexec: true } },
    ],
    network: {
      enabled: true,
      strict: true,
      max_connections: 128,
      policy: {
        default_egress: "allow",
        rules: [
          {
            direction: "egress",
            destination: { cidr: "10.0.0.0/8" },
            action: "deny",
            ports: [{ start: 1, end: 65535 }],
            protocols: ["tcp", "udp", "icmpv4", "icmpv6"],
          },
          { direction: "ingress", destination: "any", action: "allow" },
          { direction: "any", destination: { group: "metadata" }, action: "deny" },
          { direction: "egress", destination: { domain: "example.org" }, action: "allow" },
          { direction: "egress", destination: { domain_suffix: "example.com" }, action: "allow" },
        ],
      },
      secrets: {
        on_violation: { type: "block_and_terminate" },
        entries: [
          { env_var: "API_KEY", placeholder: "$KEY", value: "PLANTED-secret" },
          {
            env_var: "TOKEN",
            placeholder: "$TOKEN",
            source: { type: "store", reference: "PLANTED-reference" },
            allowed_hosts: [
              { type: "exact", value: "a.example" },
              { type: "wildcard", value: "*.b.example" },
            ],
            injection: { headers: false, basic_auth: false, query_params: true, body: true },
            on_violation: { type: "passthrough", hosts: [{ type: "any" }] },
            require_tls_identity: false,
          },
        ],
      },
    },
    patches: [
      { type: "text", path: "/etc/a", content: "PLANTED-text", mode: 0o600, replace: true },
      { type: "file", path: "/etc/b", content: [0, 255, 10] },
      { type: "copy_file", src: "x", dst: "/etc/c", mode: null },
      { type: "copy_dir", src: "y", dst: "/etc/d" },
      { type: "symlink", target: "../e", link: "/etc/e" },
      { type: "mkdir", path: "/etc/f", mode: 0o755 },
      { type: "remove", path: "/etc/g" },
      { type: "append", path: "/etc/h", content: "more" },
    ],
    init: { cmd: "/sbin/init", args: ["--x"], env: [["A", "B"]] },
    pull_policy: "always",
    security_profile: "restricted",
    lifecycle: { ephemeral: true, idle_timeout_secs: 0, max_duration_secs: 3600 },
    registry: { mode: "inline", username: "PLANTED-user", password: "PLANTED-password" },
  };

  /** As the contract spells it back. */
  const SPEC = {
    image: REQUEST.image.reference,
    resources: REQUEST.resources,
    runtime: {
      ...REQUEST.runtime,
      hostname: null,
      metrics_sample_interval_ms: 1000,
      disable_metrics_sample: false,
    },
    env: [
      { key: "TWICE", value: "läst ✓" },
      { key: "EMPTY", value: "" },
    ],
    labels: REQUEST.labels,
    rlimits: [
      { resource: "Nofile", soft: 1024, hard: 9007199254740991 },
      { resource: "As", soft: 0, hard: 0 },
    ],
    lifecycle: REQUEST.lifecycle,
    mounts: [
      { type: "DiskImage", guest: "/disk", format: "Qcow2", fstype: "ext4", options: OPTIONS },
      {
        type: "Tmpfs",
        guest: "/mnt",
        size_mib: 16,
        options: { ...OPTIONS, noexec: true, nodev: true },
      },
      {
        type: "Named",
        guest: "/mnt/cache",
        options: { ...OPTIONS, noexec: true },
        stat_virtualization: "strict",
        host_permissions: "private",
      },
      {
        type: "Bind",
        guest: "/mnt/data/deep",
        options: { ...OPTIONS, readonly: true, nosuid: true },
        stat_virtualization: "relaxed",
        host_permissions: "mirror",
        quota_mib: 64,
      },
    ],
    network: {
      enabled: true,
      ports: [],
      trust_host_cas: false,
      dns: null,
      interface: null,
      tls: null,
      max_connections: 128,
      policy: {
        default_egress: "allow",
        default_ingress: "deny",
        rules: [
          REQUEST.network.policy.rules[0],
          ...REQUEST.network.policy.rules
            .slice(1)
            .map((rule) => ({ ...rule, ports: [], protocols: [] })),
        ],
      },
      secrets: [
        {
          env_var: "API_KEY",
          placeholder: "$KEY",
          allowed_hosts: [],
          injection: { headers: true, basic_auth: true, query_params: false, body: false },
          on_violation: { type: "block_and_terminate" },
        },
        {
          env_var: "TOKEN",
          placeholder: "$TOKEN",
          allowed_hosts: [
            { type: "exact", value: "a.example" },
            { type: "wildcard", value: "*.b.example" },
          ],
          injection: { headers: false, basic_auth: false, query_params: true, body: true },
          on_violation: { type: "passthrough", hosts: [{ type: "any" }] },
        },
      ],
    },
  };

  /** Every field of a volume. */
  const VOLUME = { name: "cache-1", labels: { team: "core", "odd key/ü": "" }, capacity_gib: 7 };

  test("a volume: request -> message -> row -> message -> answer, every field", async () => {
    const created = await program.api("POST", "/v1/volumes", { ...VOLUME, storage: "block" });
    const expected = {
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      kind: "managed",
      name: "cache-1",
      status: "active",
      storage: "block",
      capacity_bytes: 7 * 2 ** 30,
      used_bytes: null,
      labels: VOLUME.labels,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      updated_at: expect.stringMatching(/Z$/),
    };
    expect(created).toMatchObject({ status: 200, body: expected });
    expect(Object.keys(created.body).sort()).toEqual(Object.keys(expected).sort());
    const { id } = created.body;
    const measured = async () => (await program.api("GET", `/v1/volumes/${id}`)).body;
    await expect.poll(measured, { timeout: 30_000 }).toEqual({ ...expected, used_bytes: 0 });
    const patched = await program.api("PATCH", `/v1/volumes/${id}`, {
      capacity_gib: null,
      labels: {},
    });
    expect(patched.body).toEqual({ ...expected, used_bytes: 0, capacity_bytes: null, labels: {} });
  });

  test("request -> message -> row -> message -> answer, every field", async () => {
    const created = await program.api("POST", "/v1/sandboxes?start=true&wait_for=running", REQUEST);
    expect(created).toMatchObject({ status: 200 });
    const expected = {
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      org_id: (await program.api("GET", "/v1/me/org")).body.id,
      name: "All.of-it_1",
      slug: "all-of-it-1",
      status: "running",
      status_reason: null,
      ephemeral: true,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      started_at: expect.stringMatching(/Z$/),
      stopped_at: null,
      last_failure_message: null,
      spec: SPEC,
    };
    expect(created.body).toEqual(expected);
    expect((await program.api("GET", "/v1/sandboxes/by-name/All.of-it_1")).body).toEqual(expected);
    expect((await program.api("GET", "/v1/sandboxes")).body.data).toEqual([expected]);
  });

  test("nothing that was to stay secret can be read anywhere in the database", async () => {
    const text = await withClient(program.databaseUrl, async (client) => {
      const { rows } = await client.query<{ table: string }>(
        `SELECT format('%I.%I', schemaname, tablename) AS table FROM pg_tables
       WHERE schemaname IN ('sandbox', 'organization', 'orchestrator')`,
      );
      const dumped: string[] = [];
      for (const { table } of rows) {
        const { rows: found } = await client.query(
          `SELECT row_to_json(t)::text AS row FROM ${table} t`,
        );
        dumped.push(JSON.stringify(found));
      }
      return dumped.join();
    });
    const planted = [
      "PLANTED-secret",
      "PLANTED-reference",
      "PLANTED-text",
      "PLANTED-user",
      "PLANTED-password",
    ];
    for (const secret of planted) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString("hex"));
    }
  });
});
