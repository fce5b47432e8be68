import { readdir } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VERSION } from "../../runtime/version.ts";
import { callCli } from "../support/cli.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let env: Record<string, string>;
let all: string[];

beforeEach(async () => {
  database = await createEmptyDatabase();
  env = { DATABASE_URL: database.url, MIGRATE: "off" };
  const entries = await readdir("prisma/migrations", { withFileTypes: true });
  all = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
});
afterEach(() => database.close());

async function migrate(...args: string[]) {
  const { code, stdout } = await callCli(env, "migrate", "--json", ...args);
  return { code, said: JSON.parse(stdout) };
}

test("says what is due, applies it once, and says that it did", async () => {
  const nothing = { release: VERSION, applied: [], due: [], newer: [], faults: [] };
  expect(await migrate("--status")).toEqual({
    code: 1,
    said: { ...nothing, ok: false, migrated_by: null, due: all },
  });
  expect(await migrate()).toEqual({
    code: 0,
    said: { ...nothing, ok: true, migrated_by: VERSION, applied: all },
  });
  expect(await migrate("--status")).toEqual({
    code: 0,
    said: { ...nothing, ok: true, migrated_by: VERSION },
  });
});

test("with MIGRATE=off no other command migrates, and each says what to do", async () => {
  const refused = await callCli(env, "organizations", "list");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/lacks \d+ migrations .*MIGRATE=off: run npm run cli -- migrate/);
  expect((await migrate("--status")).said.due).toEqual(all);
  expect((await callCli(env, "migrate")).stdout).toContain(`applied: ${all[0]}`);
  expect((await callCli(env, "organizations", "list")).code).toBe(0);
});

test("a server that is not the database's own is refused, not ignored", async () => {
  const refused = await callCli(env, "migrate", "--server", "http://127.0.0.1:9");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("leave --server out");
});
