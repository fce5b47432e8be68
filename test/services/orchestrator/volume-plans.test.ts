import { expect, onTestFinished, test } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { listToMeasure } from "../../../services/orchestrator/store/volumes.ts";
import { createTestDatabase } from "../../support/database.ts";

const QUERY = { limit: 100, soon: [], resting: [], changedSecs: 60, idleSecs: 10_000 };

async function many(): Promise<Database> {
  const test = await createTestDatabase();
  const database = openDatabase(test.url, { poolSize: 1 });
  onTestFinished(async () => {
    await database.close();
    await test.close();
  });
  await database.query(
    `INSERT INTO sandbox.volumes (id, org_id, kind, name, created_at, updated_at, used_bytes, measured_at)
     SELECT gen_random_uuid(), gen_random_uuid(), 'managed', 'v', now(), now(), 1, now() - n * interval '0.1 s'
     FROM generate_series(1, 20000) n RETURNING id`,
  );
  await database.query(
    `INSERT INTO orchestrator.volume_changes (volume_id, until)
     SELECT id, now() + interval '1 hour' FROM sandbox.volumes LIMIT 10 RETURNING volume_id`,
  );
  await database.prisma.$executeRawUnsafe("ANALYZE sandbox.volumes, orchestrator.volume_changes");
  return database;
}

/** How many pages a statement looks at. */
async function pagesOf(database: Database, run: (explained: Database) => Promise<unknown>) {
  let pages = 0;
  const query = async <Row>(sql: string, ...values: unknown[]): Promise<Row[]> => {
    const [row] = await database.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`,
      ...values,
    );
    const { Plan: plan = {} } = row?.["QUERY PLAN"][0] ?? {};
    pages += (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
    return [];
  };
  await run({ ...database, query });
  return pages;
}

test("of many volumes none is looked at that it is not time to measure", async () => {
  const database = await many();
  const pages = await pagesOf(database, (explained) => listToMeasure(explained, QUERY));
  expect(pages).toBeGreaterThan(0);
  // The table alone has hundreds.
  expect(pages).toBeLessThan(100);
});
