import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../../prisma/migrate.ts";
import { DATABASE, type PostgresServer, startPostgres } from "../../../runtime/postgres/server.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSystem, type System } from "./support.ts";

let folder: string;
let postgres: PostgresServer;
let system: System;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-restart-"));
  postgres = await startPostgres({ folder });
  const url = postgres.url(DATABASE);
  await migrate(url);
  system = await createSystem({ at: { url, close: async () => {} } });
});
afterAll(async () => {
  await system.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const statusOf = async (id: string) =>
  (await system.get(id).catch(() => undefined))?.status ?? "unknown";
const patient = { timeout: 20_000 };

test("PostgreSQL goes and comes back: what runs runs on, what was asked for is done, hints arrive", async () => {
  const [running, starting] = [await system.create(), await system.create()];
  for (const { id } of [running, starting])
    await expect.poll(() => statusOf(id), patient).toBe("running");
  await change.stopSandbox(system.ctx, system.caller, { id: starting.id });
  await expect.poll(() => statusOf(starting.id), patient).toBe("stopped");
  system.engine.settings.delays.start = 2_000;
  await change.startSandbox(system.ctx, system.caller, { id: starting.id });
  await postgres.stop();
  // Longer than a lease lasts.
  await new Promise((go) => setTimeout(go, 6_000));
  postgres = await startPostgres({ folder });
  await expect.poll(() => statusOf(starting.id), patient).toBe("running");
  expect(await system.get(running.id)).toMatchObject({ status: "running", generation: 1 });
  system.engine.settings.delays.start = 0;
  const { id } = await system.create();
  await expect.poll(() => statusOf(id), patient).toBe("running");
  await expect
    .poll(() =>
      system.database.query(
        "SELECT query FROM pg_stat_activity WHERE query = 'LISTEN sandgate_work' AND datname = current_database()",
      ),
    )
    .toHaveLength(1);
});
