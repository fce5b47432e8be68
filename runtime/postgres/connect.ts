import { Client, DatabaseError } from "pg";
import { whyOf } from "../data-dir.ts";
import { StartupError } from "../errors.ts";

/** As `server_version_num` has it. */
export const OLDEST = 150_000;

const STARTING_UP = "57P03";
const NO_SUCH_DATABASE = "3D000";

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // A connection cut while idle must not end the process; the next statement says so.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * Whether a server takes connections by now.
 * @returns false while it is starting
 */
export async function isReady(url: string): Promise<boolean> {
  try {
    await withClient(url, async () => {});
    return true;
  } catch (error) {
    if (error instanceof DatabaseError && error.code !== STARTING_UP) throw error;
    return false;
  }
}

/** Makes a database where the server has none of that name. */
export async function ensureDatabase(maintenanceUrl: string, url: string, name: string) {
  try {
    await withClient(url, async () => {});
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== NO_SUCH_DATABASE) throw error;
    await withClient(maintenanceUrl, (client) => client.query(`CREATE DATABASE "${name}"`));
  }
}

/**
 * Checks a database that somebody else runs.
 * @throws StartupError where it cannot be reached or is too old
 */
export async function checkDatabase(url: string): Promise<void> {
  const version = await withClient(url, async (client) => {
    const { rows } = await client.query<{ server_version_num: string }>("SHOW server_version_num");
    return Number(rows[0]?.server_version_num);
  }).catch((error: unknown) => {
    throw new StartupError(
      `The database at ${shown(url)} (DATABASE_URL) cannot be reached: ${whyUnreachable(error)}`,
      { cause: error },
    );
  });
  if (version < OLDEST)
    throw new StartupError(
      `The database at ${shown(url)} (DATABASE_URL) is older than PostgreSQL 15`,
    );
}

/** Why a database cannot be reached, for the operator. */
export function whyUnreachable(error: unknown): string {
  return error instanceof DatabaseError ? error.message : whyOf(error);
}

/** A database's URL without user, password and parameters. */
export function shown(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
