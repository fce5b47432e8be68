import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { image, type Program, startProgram } from "../support/program.ts";

// The next release adds columns while this one runs: statements that are prepared already have to survive that.

let program: Program;

beforeAll(async () => {
  program = await startProgram();
});
afterAll(() => program.close());

const WAIT = "start=true&wait_for=running&wait_timeout=30";

/** A bit of everything. @returns the statuses of the answers */
async function useAll(round: string): Promise<number[]> {
  const { api } = program;
  const made = await api("POST", "/v1/volumes", { name: `data-${round}`, capacity_gib: 1 });
  const key = { headers: { "idempotency-key": `round-${round}` } };
  const spec = { ...image(), name: round, labels: { round }, mounts: [] };
  const sandbox = await api("POST", `/v1/sandboxes?${WAIT}`, spec, key);
  const { id } = sandbox.body;
  const volume = `/v1/volumes/${made.body.id}`;
  const answers = [
    made,
    sandbox,
    await api("POST", `/v1/sandboxes?${WAIT}`, spec, key),
    await api("GET", "/v1/sandboxes?limit=5"),
    await api("GET", `/v1/sandboxes/by-name/${round}`),
    await api("PATCH", `/v1/sandboxes/${id}`, { name: `${round}-renamed` }),
    await api("POST", `/v1/sandboxes/${id}/stop`),
    await api("GET", volume),
    await api("PATCH", volume, { capacity_gib: 2 }),
    await api("DELETE", volume),
    await api("DELETE", `/v1/sandboxes/${id}`),
    await api("GET", "/v1/me/org"),
    await api("GET", "/v1/members"),
    await api("GET", "/v1/events?limit=50"),
    await api("GET", "/v1/quotas"),
    await api("GET", "/v1/billing/usage"),
  ];
  return answers.map(({ status }) => status);
}

test("a program that runs goes on while every table gets a column", {
  timeout: 60_000,
}, async () => {
  const before = await useAll("before");
  expect(before.filter((status) => status >= 300)).toEqual([]);
  const altered = await withClient(program.databaseUrl, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname IN ('organization', 'sandbox', 'orchestrator', 'billing')`,
    );
    for (const { name } of rows)
      await client.query(`ALTER TABLE ${name} ADD COLUMN of_the_next int NOT NULL DEFAULT 7`);
    return rows.length;
  });
  expect(altered).toBeGreaterThan(15);
  expect(await useAll("after")).toEqual(before);
  expect(await useAll("again")).toEqual(before);
});
