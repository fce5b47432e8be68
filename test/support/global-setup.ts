import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { migrate } from "../../prisma/migrate.ts";
import { startPostgres } from "../../runtime/postgres/server.ts";
import { setupDocker } from "./docker.ts";

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

/** Starts what a test run shares: one PostgreSQL with a migrated database to clone, and Docker where there is one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stopPostgres = await setupPostgres(project);
  try {
    const { docker, teardown } = await setupDocker(process.env);
    project.provide("docker", docker);
    return async () => {
      await Promise.all([teardown(), stopPostgres()]);
    };
  } catch (error) {
    await stopPostgres();
    throw error;
  }
}

async function setupPostgres(project: TestProject): Promise<() => Promise<void>> {
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
