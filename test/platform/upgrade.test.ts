import { createHash, randomUUID } from "node:crypto";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { migrate } from "../../prisma/migrate.ts";
import { createStore as createBillingStore } from "../../services/billing/store.ts";
import { createStore as createOrganizationStore } from "../../services/organization/store.ts";
import { createStore as createSandboxStore } from "../../services/sandbox/store.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/database.ts";
import { PLACES_SQL, type PlacesRow, wrongPlaces } from "../support/places.ts";

// A database of the version before there were accounts, in use, and then brought up to date.

const MIGRATIONS = "prisma/migrations";
const NEXT = "20261121160000_accounts";

const ORG = randomUUID();
const OTHER = randomUUID();
const KEY = createHash("sha256").update("a key of before").digest();
const ACTOR = { kind: "system", code: "test", label: "Test" } as const;

let server: TestDatabase;
let database: Database;

beforeAll(async () => {
  server = await createEmptyDatabase();
  database = openDatabase(server.url);
  const folder = await mkdtemp(join(tmpdir(), "sandgate-migrations-"));
  for (const name of (await readdir(MIGRATIONS)).filter((each) => each < NEXT))
    await cp(join(MIGRATIONS, name), join(folder, name), { recursive: true });
  await migrate(server.url, folder);
  await rm(folder, { recursive: true });
  await fill();
  await migrate(server.url);
});
afterAll(async () => {
  await database.close();
  await server.close();
});

async function fill(): Promise<void> {
  for (const [id, slug] of [
    [ORG, "one"],
    [OTHER, "two"],
  ])
    await database.query(
      "INSERT INTO organization.organizations (id, name, slug) VALUES ($1::uuid, $2, $2) RETURNING id",
      id,
      slug,
    );
  await database.query(
    `INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four)
     VALUES ($1::uuid, $2::uuid, 'old', $3, 'sgt_live_', 'abcd')
     RETURNING organization.append_event(org_id, 'api_key_created', '{}', '{}', created_at)`,
    randomUUID(),
    ORG,
    KEY,
  );
  await addSandbox(ORG, "created", { ephemeral: false });
  await addSandbox(ORG, "starting", { ephemeral: true });
  await addSandbox(ORG, "running", { ephemeral: true });
  await addSandbox(ORG, "running", { ephemeral: false });
  await addSandbox(ORG, "stopping", { ephemeral: false });
  await addSandbox(ORG, "stopped", { ephemeral: false });
  await addSandbox(ORG, "failed", { ephemeral: false });
  await addSandbox(ORG, "running", { ephemeral: false, destroyed: true });
  await addSandbox(OTHER, "stopped", { ephemeral: false, destroyed: true });
  await database.query(
    "UPDATE sandbox.sandboxes SET requires = '{mounts.bind, network}' WHERE status = 'stopping' RETURNING id",
  );
}

const PHASES: Partial<Record<string, string>> = {
  starting: "starting",
  stopped: "ended",
  failed: "ended",
};

/** With its run, of which the billed part, where there is one, began an hour ago. */
async function addSandbox(
  orgId: string,
  status: string,
  { ephemeral, destroyed = false }: { ephemeral: boolean; destroyed?: boolean },
): Promise<void> {
  const id = randomUUID();
  const generation = status === "created" ? 0 : 1;
  await database.query(
    `INSERT INTO sandbox.sandboxes
       (id, org_id, name, slug, status, spec, requires, ephemeral, generation, created_at, destroyed_at)
     VALUES ($1::uuid, $2::uuid, $1, $1, $3, '{}', '{}', $4, $5::int, now() - interval '2 hours',
             CASE WHEN $6::boolean THEN now() END) RETURNING id`,
    id,
    orgId,
    status,
    ephemeral,
    generation,
    destroyed,
  );
  if (generation === 0) return;
  const desired = destroyed || status === "stopping" ? "stopped" : "running";
  // A start that failed never ran.
  await database.query(
    `INSERT INTO sandbox.runs (sandbox_id, generation, org_id, vcpus, memory_mib, ephemeral, desired, phase, outcome,
       admitted_at, running_at, stop_admitted_at, machine_ended_at, closed_at)
     SELECT $1::uuid, 1, $2::uuid, 2, 512, $3, $4, phase, CASE WHEN phase = 'ended' THEN $6 END, now() - interval '2 hours',
       CASE WHEN phase <> 'starting' AND $6 <> 'failed' THEN now() - interval '1 hour' END,
       CASE WHEN $4 = 'stopped' THEN now() END, ended, ended
     FROM (SELECT $5::text AS phase, CASE WHEN $5 = 'ended' THEN now() END AS ended) p RETURNING sandbox_id`,
    id,
    orgId,
    ephemeral,
    desired,
    PHASES[status] ?? "running",
    status,
  );
}

test("places are what sandboxes and runs are", async () => {
  const rows = await database.query<PlacesRow>(PLACES_SQL);
  expect(wrongPlaces(rows)).toEqual([]);
  expect(rows).toEqual([{ orgId: ORG, kept: "7/2/1", counted: "7/2/1" }]);
});

test("keys open what they opened, and events stay", async () => {
  const store = createOrganizationStore(database);
  expect(await store.findKeyHolder(KEY)).toMatchObject({ orgId: ORG, apiKeyName: "old" });
  expect(await store.listKeys(ORG)).toMatchObject([{ lastUsedAt: null, replacedBy: null }]);
  const page = {
    orgId: ORG,
    limit: 10,
    after: null,
    eventType: null,
    sinceUs: null,
    untilUs: null,
  };
  expect((await store.listEvents(page)).rows).toMatchObject([{ eventType: "api_key_created" }]);
});

test("everybody has the plan without limits", async () => {
  expect(await createBillingStore(database).findAccount(ORG)).toMatchObject({
    plan: { name: "unlimited" },
    byDefault: true,
    limits: {},
    exhaustedPool: null,
    ephemeralRunning: 2,
  });
});

test("runs of before are metered, each once; what is open is not yet", async () => {
  const store = createBillingStore(database);
  const taken = [await store.rollUp(1), await store.rollUp(10), await store.rollUp(10)];
  // The stopped ones of both organizations, and the failed start.
  expect(taken).toEqual([1, 2, 0]);
  const totals = await database.query<{ org_id: string; vcpu: string }>(
    "SELECT org_id, sum(vcpu)::text AS vcpu FROM billing.daily GROUP BY org_id",
  );
  const hour = String(2 * 3_600_000);
  expect(new Map(totals.map(({ org_id, vcpu }) => [org_id, vcpu]))).toEqual(
    new Map([
      [ORG, hour],
      [OTHER, hour],
    ]),
  );
});

test("every organization has its host volume, and what takes something from one has it written down", async () => {
  const store = createSandboxStore(database);
  for (const org of [ORG, OTHER])
    expect(await store.listVolumes(org)).toMatchObject([
      { orgId: org, kind: "host", name: null, status: "active", usedBytes: null, labels: {} },
    ]);
  const mounted = await database.query(
    `SELECT s.status, m.name, m.volume_id = (SELECT v.id FROM sandbox.volumes v WHERE v.org_id = s.org_id) AS own
     FROM sandbox.mounted_volumes m JOIN sandbox.sandboxes s ON s.id = m.sandbox_id`,
  );
  expect(mounted).toEqual([{ status: "stopping", name: "", own: true }]);
  const made = { id: randomUUID(), orgId: ORG, name: "data", capacityGib: 1, labels: {} };
  expect(await store.createVolume(made, ACTOR)).toMatchObject({ name: "data" });
  const write = { id: randomUUID(), volumeId: made.id, bytes: 1n };
  expect(await store.reserveBytes(ORG, write)).toBeUndefined();
});

test("what was running can be stopped and destroyed, and gives its places back", async () => {
  const store = createSandboxStore(database);
  await database.query(
    `INSERT INTO orchestrator.leases (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     VALUES ('test', gen_random_uuid(), 1, now() + interval '1 hour', now(), '{}', 4, 4096) RETURNING engine`,
  );
  const living = { orgId: ORG, limit: 100, after: null, labels: null, statuses: null };
  const { rows: sandboxes } = await store.list(living);
  expect(sandboxes).toHaveLength(7);
  for (const { id, status } of sandboxes) {
    if (status === "running") expect(await store.stop(ORG, { id }, ACTOR)).toBeDefined();
    expect(await store.destroy(ORG, { id }, ACTOR)).toBeDefined();
  }
  const rows = await database.query<PlacesRow>(PLACES_SQL);
  expect(rows).toEqual([{ orgId: ORG, kept: "0/0/0", counted: "0/0/0" }]);
});
