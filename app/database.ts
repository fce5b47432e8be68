import { join } from "node:path";
import { type Database, openDatabase } from "../prisma/database.ts";
import type { Config } from "../runtime/config.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { mayPass } from "../runtime/postgres/away.ts";
import { checkDatabase } from "../runtime/postgres/connect.ts";
import { startBehindTemporary } from "../runtime/postgres/reach.ts";
import { DATABASE } from "../runtime/postgres/server.ts";
import { seldom } from "../runtime/seldom.ts";
import { exposePool } from "./metrics.ts";
import { untilThere } from "./patience.ts";
import { databaseAnswers, type Needs } from "./readiness.ts";
import { provideSchema, SchemaDue, watchFit } from "./schema.ts";

export interface DatabaseOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
  /** Called with a sentence when a server of our own ends without being asked to. */
  onCrash: (message: string) => void;
  needs: Needs;
  /** Undefined: nobody looks. */
  metrics?: Metrics;
  /** What need not be there yet: a server that takes connections, a schema that somebody else migrates. */
  waitsFor: readonly ("database" | "schema")[];
}

/**
 * The database, ours or the operator's, up to date and open.
 * @throws StartupError
 */
export async function provideDatabase(
  options: DatabaseOptions,
): Promise<{ database: Database; url: string }> {
  const { config, log, lifecycle, onCrash, needs, metrics } = options;
  needs.expect("database", "schema");
  const url = config.databaseUrl ?? (await startOwn(config.dataDir, lifecycle, onCrash));
  const onRefused = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "a statement was refused"),
  );
  const database = await lifecycle.start("database", {
    start: () => openDatabase(url, { ...config.database, onRefused }),
    end: (opened) => opened.close(),
  });
  needs.ask("database", () => databaseAnswers(database));
  if (metrics) exposePool(metrics, database);
  await bringUpToDate(url, options);
  needs.ask("schema", await watchFit(database, options.log));
  return { database, url };
}

function bringUpToDate(url: string, options: DatabaseOptions): Promise<void> {
  const { config, log, waitsFor } = options;
  const worthWaiting = (error: unknown) =>
    error instanceof SchemaDue
      ? waitsFor.includes("schema")
      : waitsFor.includes("database") && mayPass(error);
  const attempt = async () => {
    if (config.databaseUrl !== undefined) await checkDatabase(config.databaseUrl);
    await provideSchema(url, config.migrate, log);
  };
  return untilThere("the database", attempt, worthWaiting, options);
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
