import { join } from "node:path";
import { type Database, openDatabase } from "../prisma/database.ts";
import { migrate } from "../prisma/migrate.ts";
import type { Config } from "../runtime/env.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import { checkDatabase } from "../runtime/postgres/connect.ts";
import { startBehindTemporary } from "../runtime/postgres/reach.ts";
import { DATABASE } from "../runtime/postgres/server.ts";
import { databaseAnswers, type Needs } from "./readiness.ts";

const POOL_SIZE = 10;

export interface DatabaseOptions {
  config: Config;
  lifecycle: Lifecycle;
  /** Called with a sentence when a server of our own ends without being asked to. */
  onCrash: (message: string) => void;
  needs: Needs;
}

/**
 * The database, ours or the operator's, up to date and open.
 * @throws StartupError
 */
export async function provideDatabase({
  config,
  lifecycle,
  onCrash,
  needs,
}: DatabaseOptions): Promise<{ database: Database; url: string }> {
  needs.expect("database", "schema");
  const url = config.databaseUrl ?? (await startOwn(config.dataDir, lifecycle, onCrash));
  if (config.databaseUrl !== undefined) await checkDatabase(config.databaseUrl);
  await migrate(url);
  needs.ask("schema", async () => true);
  const database = await lifecycle.start("database", {
    start: () => openDatabase(url, { poolSize: POOL_SIZE }),
    end: (opened) => opened.close(),
  });
  needs.ask("database", () => databaseAnswers(database));
  return { database, url };
}

async function startOwn(
  dataDir: string,
  lifecycle: Lifecycle,
  onCrash: (message: string) => void,
): Promise<string> {
  const server = await lifecycle.start("PostgreSQL", {
    start: () => startBehindTemporary({ folder: join(dataDir, "postgres"), onCrash }),
    end: (started) => started.stop(),
    always: true,
  });
  return server.url(DATABASE);
}
