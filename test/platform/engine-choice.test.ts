import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chooseEngine } from "../../app/engine.ts";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { StartupError } from "../../runtime/errors.ts";
import { setEngine } from "../services/sandbox/support.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const log = pino({ level: "silent" });
const away = {
  choice: "auto",
  volumesDir: "/nonexistent/volumes",
  dockerHost: "unix:///nonexistent/docker.sock",
  dockerNetworkPolicy: "enforced",
  dockerDiskImages: "refused",
  dockerRuntime: undefined,
} as const;
let cloned: TestDatabase;
let database: Database;

beforeAll(async () => {
  cloned = await createTestDatabase();
  database = openDatabase(cloned.url);
});
afterAll(async () => {
  await database.close();
  await cloned.close();
});

test("without Docker, `auto` is simulated, and says why", async () => {
  const { engine, why } = await chooseEngine(away, database, log);
  expect(engine.name).toBe("simulated");
  expect(why).toContain("/nonexistent/docker.sock");
});

test("where Docker has led before, `auto` does not take its sandboxes for simulated ones", async () => {
  await setEngine(database);
  await database.query("UPDATE orchestrator.leases SET engine = 'docker' RETURNING engine");
  await expect(chooseEngine(away, database, log)).rejects.toThrow(StartupError);
  const asked = await chooseEngine({ ...away, choice: "simulated" }, database, log);
  expect(asked.engine.name).toBe("simulated");
});
