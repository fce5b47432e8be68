import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import { startHousekeeping } from "../../../services/sandbox/housekeeping.ts";
import { type Bench, createBench, createInput, newCaller, setEngine } from "./support.ts";

let bench: Bench;
const caller = newCaller();
const unreachable = { reason: "ORCHESTRATOR_UNREACHABLE" };

beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

async function count(table: string): Promise<number> {
  const [row] = await bench.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM ${table}`,
  );
  return row?.n ?? -1;
}

async function written(): Promise<number[]> {
  return Promise.all(
    ["sandbox.sandboxes", "sandbox.runs", "sandbox.sealed_specs", "organization.events"].map(count),
  );
}

describe("before any engine was seen", () => {
  test("a plain create needs none, a start does", async () => {
    const { id } = await createSandbox(bench.ctx, caller, createInput());
    await expect(change.startSandbox(bench.ctx, caller, { id })).rejects.toMatchObject(unreachable);
  });

  test("what the spec needs is judged at the start", async () => {
    const input = createInput({ init: { cmd: "auto" } });
    const { id } = await createSandbox(bench.ctx, caller, input);
    await setEngine(bench.database, { features: ["network"] });
    await expect(change.startSandbox(bench.ctx, caller, { id })).rejects.toMatchObject({
      reason: "INVALID_SANDBOX_CONFIG",
      faults: [{ field: "spec.init" }],
    });
  });
});

describe("with a dead orchestrator", () => {
  beforeEach(() => setEngine(bench.database, { alive: false }));

  test("create with start is refused and writes nothing", async () => {
    const before = await written();
    const input = createInput({}, { start: true });
    await expect(createSandbox(bench.ctx, caller, input)).rejects.toMatchObject(unreachable);
    expect(await written()).toEqual(before);
  });

  test("what holds compute can be neither stopped nor destroyed, what holds none can be destroyed", async () => {
    await setEngine(bench.database);
    const running = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
    const idle = await createSandbox(bench.ctx, caller, createInput());
    await setEngine(bench.database, { alive: false });
    const before = await written();
    const { id } = running;
    await expect(change.stopSandbox(bench.ctx, caller, { id })).rejects.toMatchObject(unreachable);
    await expect(change.destroySandbox(bench.ctx, caller, { id })).rejects.toMatchObject(
      unreachable,
    );
    expect(await written()).toEqual(before);
    await expect(change.destroySandbox(bench.ctx, caller, { id: idle.id })).resolves.toBeDefined();
  });
});

describe("with an engine that honours little", () => {
  beforeEach(() => setEngine(bench.database, { features: ["mounts.tmpfs", "network"] }));

  test("every part that it does not honour is named, at its place in the request", async () => {
    const input = createInput({
      mounts: [
        { guest: "/z", source: { case: "tmpfs", value: {} } },
        { guest: "/a", source: { case: "bind", value: { host: "/x", quotaMib: 1 } } },
      ],
      patches: [{ kind: { case: "remove", value: { path: "/etc/motd" } } }],
      network: { policy: {}, strict: true },
      runtime: { scripts: { hello: "#!/bin/sh" } },
    });
    const before = await written();
    await expect(createSandbox(bench.ctx, caller, input)).rejects.toMatchObject({
      reason: "INVALID_SANDBOX_CONFIG",
      faults: [
        "spec.network.policy",
        "spec.network.strict",
        "spec.runtime.scripts",
        "spec.mounts[1]",
        "spec.mounts[1].quota_mib",
        "spec.patches",
      ].map((field) => ({ field, message: expect.any(String) })),
    });
    expect(await written()).toEqual(before);
  });

  test("what it honours is admitted", async () => {
    const mounts = [{ guest: "/z", source: { case: "tmpfs" as const, value: {} } }];
    await expect(createSandbox(bench.ctx, caller, createInput({ mounts }))).resolves.toBeDefined();
  });
});

describe("with a living engine", () => {
  beforeEach(() => setEngine(bench.database));

  test("a reference to what does not exist is a fault of the request", async () => {
    const input = createInput({
      mounts: [{ guest: "/v", source: { case: "named", value: { name: "data" } } }],
      registry: { mode: { case: "specific", value: { credentialId: "c" } } },
    });
    await expect(createSandbox(bench.ctx, caller, input)).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      faults: [{ field: "spec.mounts[0].name" }, { field: "spec.registry.credential_id" }],
    });
  });

  test("a taken name or slug is refused, whoever holds the slug; a generated one is tried again", async () => {
    const { name, slug } = await createSandbox(
      bench.ctx,
      caller,
      createInput({}, { name: "mine" }),
    );
    const byName = createSandbox(bench.ctx, caller, createInput({}, { name }));
    await expect(byName).rejects.toMatchObject({ metadata: { field: "name" } });
    const foreign = createSandbox(bench.ctx, newCaller(), createInput({}, { slug }));
    await expect(foreign).rejects.toMatchObject({ metadata: { field: "slug" } });
    await expect(
      createSandbox(bench.ctx, newCaller(), createInput({}, { name })),
    ).resolves.toMatchObject({ name });
  });

  test("secrets, patch contents and credentials are stored sealed, nowhere else", async () => {
    const input = createInput(
      {
        patches: [{ kind: { case: "text", value: { path: "/k", content: "PLANTED-patch" } } }],
        registry: {
          mode: { case: "inline", value: { username: "u", password: "PLANTED-password" } },
        },
        network: {
          secrets: { entries: [{ envVar: "K", placeholder: "P", value: "PLANTED-value" }] },
        },
      },
      { start: true },
    );
    const { id } = await createSandbox(bench.ctx, caller, input);
    const rows = await bench.database.query(
      `SELECT row_to_json(s)::text AS text FROM sandbox.sandboxes s WHERE id = $1::uuid
       UNION ALL SELECT row_to_json(r)::text FROM sandbox.runs r WHERE sandbox_id = $1::uuid
       UNION ALL SELECT row_to_json(e)::text FROM organization.events e
       UNION ALL SELECT encode(sealed, 'escape') FROM sandbox.sealed_specs WHERE sandbox_id = $1::uuid`,
      id,
    );
    expect(JSON.stringify(rows)).not.toContain("PLANTED");
    expect(await count("sandbox.sealed_specs")).toBe(1);
    await change.destroySandbox(bench.ctx, caller, { id });
    await report(bench.ctx, id, 0, { kind: "removed" });
    expect(await count("sandbox.sealed_specs")).toBe(0);
  });

  test("an ephemeral sandbox that ended lingers, does not start again, and then goes by itself", async () => {
    const ctx = { ...bench.ctx, lingerSecs: 1 };
    const input = createInput({ lifecycle: { ephemeral: true } }, { start: true });
    const { id } = await createSandbox(ctx, caller, input);
    await report(ctx, id, 1, { kind: "ended", endedAt: null, cause: "exited", message: "" });
    expect((await change.getSandbox(ctx, caller, { id })).status).toBe("stopped");
    await expect(change.startSandbox(ctx, caller, { id })).rejects.toMatchObject({
      reason: "INVALID_STATE_TRANSITION",
    });
    const errors: unknown[] = [];
    const housekeeping = startHousekeeping(ctx, (error) => errors.push(error));
    await expect
      .poll(() => ctx.store.find(caller.orgId, { id }), { timeout: 10_000 })
      .toBeUndefined();
    await housekeeping.stop();
    expect(errors).toEqual([]);
  });

  test("the time limit of a run is due from its running on", async () => {
    const limited = createInput(
      { lifecycle: { maxDurationSecs: 60n, idleTimeoutSecs: 0n } },
      { start: true },
    );
    const { id } = await createSandbox(bench.ctx, caller, limited);
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    const [run] = await bench.database.query<{ secs: number }>(
      "SELECT extract(epoch FROM due_at - running_at)::int AS secs FROM sandbox.runs WHERE sandbox_id = $1::uuid",
      id,
    );
    expect(run).toEqual({ secs: 60 });
  });
});

test("of two engines the one whose lease lives decides, whoever was seen later", async () => {
  await setEngine(bench.database, { features: ["network"] });
  await bench.database.query(
    `INSERT INTO orchestrator.leases (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     VALUES ('gone', gen_random_uuid(), 1, now() - interval '1 s', now() + interval '1 day', '{}', 1, 1) RETURNING engine`,
  );
  const input = createInput({}, { start: true });
  await expect(createSandbox(bench.ctx, caller, input)).resolves.toMatchObject({
    status: "starting",
  });
  await bench.database.query(
    "DELETE FROM orchestrator.leases WHERE engine = 'gone' RETURNING engine",
  );
});

test("a spec that no list could carry is refused at its largest part; patches do not count", async () => {
  await setEngine(bench.database);
  const file = { path: "/f", content: "x".repeat(2_000_000) };
  const patches = [{ kind: { case: "text" as const, value: file } }];
  const small = createInput({ patches, env: [{ key: "A", value: "x".repeat(900_000) }] });
  await expect(createSandbox(bench.ctx, caller, small)).resolves.toBeDefined();
  const large = createInput({ env: [{ key: "A", value: "x".repeat(1_100_000) }] });
  await expect(createSandbox(bench.ctx, caller, large)).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    faults: [{ field: "spec.env" }],
  });
});
