import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinaries } from "./binaries.ts";
import { ensureCluster } from "./cluster.ts";
import { ensureDatabase } from "./connect.ts";
import { chooseIdentity } from "./identity.ts";
import { clearLeftover, stopProcess } from "./leftover.ts";
import { takeLock } from "./lock.ts";
import { launch, type ServerProcess } from "./process.ts";
import { SERVER_SETTINGS, toArguments } from "./settings.ts";
import { makeSocketFolder, removeSocketFolder, socketUrl } from "./socket.ts";

export interface PostgresOptions {
  /** Absolute path; everything of the server's is in it. Made where missing. */
  folder: string;
  /** Over the defaults of settings.ts. */
  settings?: Readonly<Record<string, string>>;
  /** Called with a sentence when the server ends without being asked to. */
  onCrash?: (message: string) => void;
  /** It will end soon: others wait for that, rather than use it. */
  temporary?: boolean;
}

/** A PostgreSQL server of our own. */
export interface PostgresServer {
  /** The URL of one of its databases. */
  url(database: string): string;
  /** Cuts every connection, and returns when the server has ended. */
  stop(): Promise<void>;
}

/** Its own database, made where missing. */
export const DATABASE = "sandgate";

/** A file in its folder that is there while a server is temporary. */
export const TEMPORARY_MARK = "temporary";

/**
 * Starts a server of our own, at the first start on a new data folder.
 * @throws LockHeld where another process uses the folder
 * @throws StartupError where it fails
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { folder } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const held = `Another Sandgate runs on ${folder}: stop it, or set DATA_DIR to another folder`;
  const unlock = takeLock(join(folder, "lock"), held);
  try {
    return await startLocked(options, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

async function startLocked(options: PostgresOptions, unlock: () => void): Promise<PostgresServer> {
  const { folder, temporary = false } = options;
  await markTemporary(folder, temporary);
  const { initdb, postgres } = findBinaries();
  const identity = await chooseIdentity(folder, postgres);
  const data = await ensureCluster(folder, initdb, identity);
  await clearLeftover(data);
  const socket = await makeSocketFolder(folder, identity);
  const url = (database: string) => socketUrl(socket, database);
  const args = toArguments(data, socket, { ...SERVER_SETTINGS, ...options.settings });
  const command = [...identity.prefix, postgres, ...args];
  const server = await launch(command, {
    identity,
    log: join(folder, "log"),
    url: url("postgres"),
  });
  try {
    await ensureDatabase(url("postgres"), url(DATABASE), DATABASE);
  } catch (error) {
    await stopProcess(server.pid);
    throw error;
  }
  return { url, stop: watch(server, options, () => release(folder, socket, unlock)) };
}

// Also clears what was left by one that was killed.
function markTemporary(folder: string, temporary: boolean): Promise<void> {
  const mark = join(folder, TEMPORARY_MARK);
  return temporary ? writeFile(mark, "", { mode: 0o600 }) : rm(mark, { force: true });
}

/** Tells of an end that nobody asked for. @returns what ends the server */
function watch(server: ServerProcess, { onCrash }: PostgresOptions, release: () => Promise<void>) {
  let stopping: Promise<void> | undefined;
  void server.ended.then((last) => {
    if (stopping === undefined) onCrash?.(`PostgreSQL ended unexpectedly: ${last}`);
  });
  const stop = async () => {
    await stopProcess(server.pid);
    await server.ended;
    await release();
  };
  return () => {
    stopping ??= stop();
    return stopping;
  };
}

async function release(folder: string, socket: string, unlock: () => void): Promise<void> {
  await removeSocketFolder(socket);
  await markTemporary(folder, false);
  unlock();
}
