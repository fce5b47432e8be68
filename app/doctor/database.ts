import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "pg";
import { type MigrationState, readMigrationState } from "../../prisma/migration-state.ts";
import type { Config } from "../../runtime/config.ts";
import { whyOf } from "../../runtime/data-dir.ts";
import { OLDEST, shown, whyUnreachable, withClient } from "../../runtime/postgres/connect.ts";
import { reachPostgres } from "../../runtime/postgres/reach.ts";
import { type Check, fail, ok, type Subject, skip, warn } from "./check.ts";
import { askRows } from "./rows.ts";

/** Of another process that starts or ends. */
const REACH_MS = 10_000;
/** Between its clock and ours. */
const CLOCK_LIMIT_MS = 1_000;

const OWN = "its own PostgreSQL, under DATA_DIR";

/** The database, and what its rows tell. */
export async function askDatabase(subject: Subject): Promise<Check[]> {
  const { config } = subject;
  if (config.databaseUrl !== undefined)
    return askServer(subject, config.databaseUrl, `${shown(config.databaseUrl)} (DATABASE_URL)`);
  const folder = join(config.dataDir, "postgres");
  if (!existsSync(join(folder, "data", "PG_VERSION")))
    return [skip("database", "there is none yet: npm start makes one under DATA_DIR")];
  return askOwn(subject, folder);
}

async function askOwn(subject: Subject, folder: string): Promise<Check[]> {
  try {
    const server = await subject.lifecycle.start("PostgreSQL", {
      start: () => reachPostgres(folder, { limitMs: REACH_MS }),
      end: (reached) => reached.release(),
      always: true,
    });
    const state = server.foreign ? "which runs" : "which was started for this look alone";
    return await askServer(subject, server.url, `${OWN}, ${state},`);
  } catch (error) {
    return [fail("database", whyOf(error), `its log is ${join(folder, "log")}`)];
  }
}

async function askServer(subject: Subject, url: string, name: string): Promise<Check[]> {
  try {
    const head = await withClient(url, (client) => askHead(client, name));
    const state = await readMigrationState(url);
    const checks = [...head, ofMigrations(state, subject.config)];
    if (state.faults.length > 0 || state.due.length > 0) return checks;
    return [...checks, ...(await withClient(url, (client) => askRows(client, subject)))];
  } catch (error) {
    const seen = `${name} cannot be asked: ${whyUnreachable(error)}`;
    return [fail("database", seen, "start it, and see that DATABASE_URL names it")];
  }
}

async function askHead(client: Client, name: string): Promise<Check[]> {
  const before = Date.now();
  const { rows } = await client.query<{ version: number; text: string; at: Date }>(
    `SELECT current_setting('server_version_num')::int AS version,
            current_setting('server_version') AS text, clock_timestamp() AS at`,
  );
  const [row] = rows;
  if (!row) throw new Error("it does not say its version");
  const seen = `${name} answers; PostgreSQL ${row.text}`;
  const version =
    row.version < OLDEST
      ? fail("database", seen, "Sandgate needs PostgreSQL 15 or newer")
      : ok("database", seen);
  return [version, ofClock(before, row.at.getTime(), Date.now())];
}

/** The answer was made at some time between the question and its arrival. */
function ofClock(before: number, at: number, after: number): Check {
  const apartMs = Math.max(before - at, at - after, 0);
  const seen = `the database's clock and this machine's are ${apartMs} ms apart`;
  if (apartMs <= CLOCK_LIMIT_MS) return ok("clock", seen);
  return warn("clock", seen, "let both machines keep their time by NTP");
}

function ofMigrations(state: MigrationState, config: Config): Check {
  const { applied, due, newer, faults, release } = state;
  const name = "migrations";
  const [fault] = faults;
  if (fault !== undefined)
    return fail(name, faults.join("; "), "run the version of Sandgate that this database is of");
  if (newer.length > 0)
    return warn(
      name,
      `release ${release} has applied ${newer.join(", ")}, beside which this one, which is older, still works`,
      "go on with the upgrade",
    );
  if (due.length === 0) return ok(name, `all ${applied.length} are applied`);
  const seen = `${due.length} are not applied: ${due.join(", ")}`;
  const where = config.databaseUrl === undefined ? "" : " with this DATABASE_URL";
  const who =
    config.migrate === "on" ? `start Sandgate${where}: it applies them` : "npm run cli -- migrate";
  return warn(name, seen, `${who}; one that runs is of an older version`);
}
