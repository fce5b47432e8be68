import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartupError } from "../errors.ts";
import { isReady } from "./connect.ts";
import { LockHeld } from "./lock.ts";
import {
  DATABASE,
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
  TEMPORARY_MARK,
} from "./server.ts";
import { socketUrl } from "./socket.ts";

/** The server of a data folder, for as long as it is needed. */
export interface ReachedPostgres {
  /** Of our own database. */
  url: string;
  /** Whether another process runs it. */
  foreign: boolean;
  /** Stops it where it was started for this. */
  release(): Promise<void>;
}

/** Another process may be starting, or be at work on a server of its own. */
const LIMIT_MS = 60_000;
const AGAIN_MS = 50;

/**
 * Reaches the server that another process runs on a folder, or starts one where nobody does.
 * @param folder absolute path, as startPostgres has it
 * @throws StartupError where neither can be had
 */
export async function reachPostgres(
  folder: string,
  { limitMs = LIMIT_MS } = {},
): Promise<ReachedPostgres> {
  for (const limit = Date.now() + limitMs; ; await sleep(AGAIN_MS)) {
    const reached = (await startTemporary(folder)) ?? (await findRunning(folder));
    if (reached) return reached;
    if (Date.now() >= limit)
      throw new StartupError(
        `Another process holds ${folder}, and its PostgreSQL does not take connections`,
      );
  }
}

/** A lock without a mark may be a temporary server's that just begins or ends. */
const GRACE_MS = 1_000;

/**
 * Starts a server that is to stay, behind temporary ones.
 * @throws StartupError as startPostgres
 */
export async function startBehindTemporary(options: PostgresOptions): Promise<PostgresServer> {
  const limit = Date.now() + LIMIT_MS;
  for (let marked = Date.now(); ; await sleep(AGAIN_MS)) {
    try {
      return await startPostgres(options);
    } catch (error) {
      if (!(error instanceof LockHeld)) throw error;
      if (isTemporary(options.folder)) marked = Date.now();
      if (Date.now() > Math.min(limit, marked + GRACE_MS)) throw error;
    }
  }
}

function isTemporary(folder: string): boolean {
  return existsSync(join(folder, TEMPORARY_MARK));
}

async function startTemporary(folder: string): Promise<ReachedPostgres | undefined> {
  try {
    const server = await startPostgres({ folder, temporary: true });
    return { url: server.url(DATABASE), foreign: false, release: () => server.stop() };
  } catch (error) {
    if (error instanceof LockHeld) return undefined;
    throw error;
  }
}

/** One that takes connections and is to stay. */
async function findRunning(folder: string): Promise<ReachedPostgres | undefined> {
  if (isTemporary(folder)) return undefined;
  const socket = await socketOf(folder);
  if (socket === undefined) return undefined;
  const url = socketUrl(socket, DATABASE);
  const ready = await isReady(url).catch(() => false);
  return ready ? { url, foreign: true, release: async () => {} } : undefined;
}

/** The folder of the server's socket, as the server has written it down. */
async function socketOf(folder: string): Promise<string | undefined> {
  const path = join(folder, "data", "postmaster.pid");
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n")[4] || undefined;
}
