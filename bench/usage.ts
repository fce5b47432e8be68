// What an organization used in 30 days of a million runs and of 10,000 volumes: GetUsage, beside the same sum over the runs
// themselves. npm run bench:usage [-- runs [volumes]]
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createContextValues } from "@connectrpc/connect";
import { type Database, openDatabase } from "../prisma/database.ts";
import { migrate } from "../prisma/migrate.ts";
import { BillingService } from "../proto/gen/billing/v1/billing_service_pb.ts";
import { withClient } from "../runtime/postgres/connect.ts";
import { DATABASE, startPostgres } from "../runtime/postgres/server.ts";
import { callerKey } from "../runtime/rpc/context.ts";
import { createInProcessTransport } from "../runtime/rpc/in-process.ts";
import { monthStart } from "../services/billing/domain/calendar.ts";
import { getUsage } from "../services/billing/domain/get-usage.ts";
import { rollUp } from "../services/billing/domain/roll-up.ts";
import { createBillingService } from "../services/billing/service.ts";
import { sumStorageStatement } from "../services/billing/store/storage.ts";
import { sumRunsStatement } from "../services/billing/store/use.ts";
import { createStore } from "../services/billing/store.ts";
import { median, summary, timed } from "./support/measure.ts";

const RUNS = Number(process.argv[2] ?? 1_000_000);
const VOLUMES = Number(process.argv[3] ?? 10_000);
const NOT_ROLLED_UP = 3_000;
const OPEN = 2_000;
const ROUNDS = 15;
const DAY_MS = 86_400_000;
const ORG = "00000000-0000-7000-8000-000000000001";

// Minutes to hours of one organization's runs, spread over 30 days; the last thousands are open.
const LOAD = `
INSERT INTO sandbox.runs (sandbox_id, generation, org_id, vcpus, memory_mib, disk_size_mib, ephemeral, desired, phase,
  outcome, admitted_at, running_at, machine_ended_at, closed_at)
SELECT gen_random_uuid(), 1, $1::uuid, 1 + i % 4, 256 * (1 + i % 8), CASE WHEN i % 3 = 0 THEN 1024 END, true, 'running',
  CASE WHEN open THEN 'running' ELSE 'ended' END, CASE WHEN NOT open THEN 'stopped' END,
  began, began + interval '400 ms', ended, ended
FROM generate_series($2::int, $3::int) AS i,
  LATERAL (SELECT $4::boolean AS open, now() - (1 - i / $5::float8) * interval '30 days' - interval '2 hours' AS began) a,
  LATERAL (SELECT CASE WHEN NOT open THEN least(began + (30 + i % 7000) * interval '1 second', now()) END AS ended) b`;

// What measurements of 60 days left, of this organization and of two others.
const LOAD_STORAGE = `
WITH volumes AS (
  SELECT gen_random_uuid() AS id, org.id AS org, i FROM generate_series(1, $2::int) AS i,
    unnest(ARRAY[$1::uuid, gen_random_uuid(), gen_random_uuid()]) AS org (id)
), sampled AS (
  INSERT INTO billing.storage_samples (volume_id, org_id, at, bytes) SELECT id, org, now() - interval '1 minute', i * 1000000::bigint FROM volumes
), today AS (
  SELECT (now() AT TIME ZONE 'UTC')::date AS day, floor(extract(epoch FROM now()) * 1000)::bigint % 86400000 AS ms
)
INSERT INTO billing.storage_accruals (org_id, day, volume_id, start_ms, end_ms, byte_ms)
SELECT org, day - back, id, 0, end_ms, i * 1000000::numeric * end_ms
FROM today, generate_series(60, 0, -1) AS back, volumes,
  LATERAL (SELECT CASE WHEN back = 0 THEN greatest(ms - 60000, 1)::int ELSE 86400000 END AS end_ms) e`;

const DIRECT = `
SELECT sum(vcpus * ms)::text AS vcpu, sum(memory_mib * ms)::text AS memory, sum(coalesce(disk_size_mib, 0) * ms)::text AS disk
FROM sandbox.runs r, LATERAL (
  SELECT greatest(0, least(coalesce(billing.ms(least(r.stop_admitted_at, r.machine_ended_at)), $2::bigint), $4::bigint)
    - greatest(billing.ms(r.running_at), $3::bigint)) AS ms) billed
WHERE r.org_id = $1::uuid AND r.running_at IS NOT NULL`;

const folder = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
const postgres = await startPostgres({ folder });
const url = postgres.url(DATABASE);
await migrate(url);
const database = openDatabase(url, { queryTimeoutMs: 600_000 });
try {
  await bench(database);
} finally {
  await database.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}

async function bench(database: Database): Promise<void> {
  const ctx = { store: createStore(database) };
  await database.query(
    "INSERT INTO organization.organizations (id, name, slug) VALUES ($1::uuid, 'Bench', 'bench') RETURNING id",
    ORG,
  );
  // It costs minutes to load against, and no read uses it.
  await sql("ALTER TABLE sandbox.runs DROP CONSTRAINT runs_sandbox_id_tstzrange_excl");
  await load(1, RUNS, false);
  let rounds = 0;
  const rollUpMs = await timed(async () => {
    while ((await rollUp(ctx)) === 0) rounds += 1;
  });
  await load(RUNS - NOT_ROLLED_UP, RUNS, false);
  await load(RUNS - OPEN, RUNS, true);
  await sql(LOAD_STORAGE, [ORG, VOLUMES]);
  await sql("VACUUM ANALYZE");
  console.log(
    `${RUNS} runs over 30 days rolled up in ${(rollUpMs / 1_000).toFixed(0)} s, by ${rounds + 1} statements; ` +
      `${NOT_ROLLED_UP} closed and ${OPEN} open ones are not`,
  );
  const now = await ctx.store.now();
  // Neither end is a midnight.
  await compare(database, "30 days", now - 30 * DAY_MS + 12_345_678, now);
  await compare(database, "a month and its pools", monthStart(now), now);
}

async function compare(database: Database, name: string, since: number, now: number) {
  const store = createStore(database);
  // The clock stands, so that both count open runs up to the same moment.
  const ctx = { store: { ...store, now: async () => now } };
  const values = [ORG, now, since, now];
  const direct = async () =>
    (await database.query<Record<"vcpu" | "memory" | "disk", string>>(DIRECT, ...values))[0];
  const { lines } = await getUsage(ctx, { orgId: ORG }, { since, until: now });
  const sums = await direct();
  for (const metric of ["vcpu", "memory", "disk"] as const) {
    const quantity = lines.find((line) => line.metric === metric)?.quantity;
    if (String(quantity) !== sums?.[metric])
      throw new Error(`${metric}: ${quantity} by GetUsage, ${sums?.[metric]} by the runs`);
  }
  const ask = clientOf(ctx, since, now);
  const asked: number[] = [];
  const counted: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    asked.push(await timed(ask));
    counted.push(await timed(direct));
  }
  console.log(`\n${name}: both answers are equal`);
  console.log(summary("GetUsage", asked, "ms"));
  console.log(summary("the sum over all runs", counted, "ms"));
  console.log(`${(median(counted) / median(asked)).toFixed(0)} times`);
  const parts = {
    before: { since: monthStart(since), until: since },
    within: { since, until: now },
  };
  await explain("GetUsage, runs", ...sumRunsStatement(ORG, now, parts));
  await explain("GetUsage, storage", ...sumStorageStatement(ORG, now, parts));
  await explain("The sum over all runs", DIRECT, ...values);
}

function clientOf(ctx: Parameters<typeof createBillingService>[0], since: number, until: number) {
  const transport = createInProcessTransport(
    (router) => router.service(BillingService, createBillingService(ctx)),
    { log: console },
  );
  const actor = { kind: "system", code: "bench", label: "Bench" } as const;
  const caller = { orgId: ORG, actor, requestId: "bench" };
  const contextValues = createContextValues().set(callerKey, caller);
  const at = (ms: number) => ({
    seconds: BigInt(Math.floor(ms / 1_000)),
    nanos: (ms % 1_000) * 1_000_000,
  });
  const window = { since: at(since), until: at(until) };
  const client = createClient(BillingService, transport);
  return () => client.getUsage({ window }, { contextValues });
}

async function explain(name: string, statement: string, ...values: unknown[]): Promise<void> {
  const rows = await sql(`EXPLAIN (ANALYZE, BUFFERS) ${statement}`, values);
  console.log(`\n${name}:\n${rows.map((row) => `  ${row["QUERY PLAN"]}`).join("\n")}`);
}

function load(from: number, to: number, open: boolean) {
  return sql(LOAD, [ORG, from, to, open, RUNS]);
}

function sql(statement: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  return withClient(url, async (client) => (await client.query(statement, values)).rows);
}
