import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { migrate } from "../../prisma/migrate.ts";
import { startPostgres } from "../../runtime/postgres/server.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgres: { maintenanceUrl: string; template: string };
  }
}

/** For data that nobody misses. */
const THROW_AWAY = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "300",
};

/** Starts the one PostgreSQL of a test run, with a migrated database to clone. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-test-"));
  const postgres = await startPostgres({ folder, settings: THROW_AWAY });
  await migrate(postgres.url("sandgate"));
  project.provide("postgres", {
    maintenanceUrl: postgres.url("postgres"),
    template: "sandgate",
  });
  return async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
