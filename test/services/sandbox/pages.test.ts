import { afterAll, beforeAll, expect, test } from "vitest";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import {
  type ListSandboxes,
  listSandboxes,
} from "../../../services/sandbox/domain/list-sandboxes.ts";
import type { SeenSandbox } from "../../../services/sandbox/domain/sandbox.ts";
import { type Bench, createBench, createInput, newCaller, setEngine } from "./support.ts";

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

const FIRST: ListSandboxes = { limit: 0, cursor: "", labels: {}, statuses: [] };

// Many of one microsecond, as a bulk insert leaves them: the id has to break the tie.
async function fill(orgId: string, rows: number): Promise<string[]> {
  const made = await bench.database.query<{ id: string }>(
    `WITH places AS (
       INSERT INTO sandbox.places (org_id, total_sandboxes, ephemeral_running, persistent_running)
       VALUES ($1::uuid, $2::int, 0, 0)
     )
     INSERT INTO sandbox.sandboxes (id, org_id, name, slug, status, spec, requires, ephemeral, created_at)
     SELECT organization.uuid7(at), $1::uuid, 'n' || i, 's-' || i || '-' || left($1::uuid::text, 8), 'created',
            jsonb_build_object('labels', jsonb_build_object('parity', (i % 2)::text)), '{}', false, at
     FROM generate_series(1, $2::int) AS i,
          LATERAL (SELECT timestamptz '2026-01-01' + (i / 3) * interval '1 microsecond' AS at) moment
     RETURNING id`,
    orgId,
    rows,
  );
  return made.map(({ id }) => id);
}

async function walk(
  caller: ReturnType<typeof newCaller>,
  query: Partial<ListSandboxes>,
  between: () => Promise<unknown> = async () => {},
): Promise<SeenSandbox[]> {
  const seen: SeenSandbox[] = [];
  let cursor = "";
  do {
    const page = await listSandboxes(bench.ctx, caller, { ...FIRST, ...query, cursor });
    seen.push(...page.rows);
    cursor = page.nextCursor ?? "";
    await between();
  } while (cursor !== "");
  return seen;
}

test("10,000 rows under inserts and deletes: each that stays is seen once, newest first", async () => {
  const caller = newCaller();
  const { orgId } = caller;
  const ids = await fill(orgId, 10_000);
  const doomed = ids.filter((_, i) => i % 10 === 0);
  const staying = new Set(ids.filter((_, i) => i % 10 !== 0));
  const seen = await walk(caller, { limit: 100 }, async () => {
    await createSandbox(bench.ctx, caller, createInput());
    for (const id of doomed.splice(0, 12)) await change.destroySandbox(bench.ctx, caller, { id });
  });
  const stayed = seen.filter(({ id }) => staying.has(id));
  expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length);
  expect(stayed).toHaveLength(staying.size);
  const order = await bench.database.query<{ id: string }>(
    "SELECT id FROM sandbox.sandboxes WHERE org_id = $1::uuid ORDER BY created_at DESC, id DESC",
    orgId,
  );
  const expected = order.map(({ id }) => id).filter((id) => staying.has(id));
  expect(stayed.map(({ id }) => id)).toEqual(expected);
}, 60_000);

test("filters hold on every page, and a cursor is bound to them and to its organization", async () => {
  const caller = newCaller();
  await fill(caller.orgId, 50);
  const odd = await walk(caller, { limit: 7, labels: { parity: "1" }, statuses: ["created"] });
  expect(odd).toHaveLength(25);
  expect(await walk(caller, { statuses: ["running", "failed"] })).toEqual([]);
  const { nextCursor } = await listSandboxes(bench.ctx, caller, { ...FIRST, limit: 7 });
  const cursor = nextCursor ?? "";
  const refused = { reason: "INVALID_REQUEST", faults: [{ field: "cursor" }] };
  for (const query of [{ labels: { parity: "1" } }, { statuses: ["created" as const] }])
    await expect(
      listSandboxes(bench.ctx, caller, { ...FIRST, cursor, ...query }),
    ).rejects.toMatchObject(refused);
  await expect(listSandboxes(bench.ctx, newCaller(), { ...FIRST, cursor })).rejects.toMatchObject(
    refused,
  );
  for (const forged of ["x", cursor.slice(2), `${cursor.slice(0, -3)}AAA`, "é".repeat(50)])
    await expect(
      listSandboxes(bench.ctx, caller, { ...FIRST, cursor: forged }),
    ).rejects.toMatchObject(refused);
});

test("the default page is 20, and the last page has no cursor", async () => {
  const caller = newCaller();
  await fill(caller.orgId, 20);
  expect(await listSandboxes(bench.ctx, caller, FIRST)).toMatchObject({ nextCursor: null });
  await createSandbox(bench.ctx, caller, createInput());
  const { rows: sandboxes, nextCursor } = await listSandboxes(bench.ctx, caller, FIRST);
  expect(sandboxes).toHaveLength(20);
  expect(nextCursor).toBeTypeOf("string");
});
