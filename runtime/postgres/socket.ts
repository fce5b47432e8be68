import { chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SUPERUSER } from "./cluster.ts";
import type { Identity } from "./identity.ts";

export const SOCKET_NAME = ".s.PGSQL.5432";
/** Beginning of the name of a socket folder outside the data folder. */
const TEMPORARY = "sandgate-pg-";

const NEAR = "socket";

/** The longest path of a socket that every system takes. */
const LONGEST = 103;

/** A folder only the server's user can enter, with a path short enough for a socket. */
export async function makeSocketFolder(folder: string, identity: Identity): Promise<string> {
  const near = join(folder, NEAR);
  const path = fits(near) ? near : await mkdtemp(join(shortTmpdir(), TEMPORARY));
  await mkdir(path, { recursive: true, mode: 0o700 });
  if (identity.user) await chown(path, identity.user.uid, identity.user.gid);
  return path;
}

/** Removes a folder that makeSocketFolder made, with what lies in it; leaves any other. */
export async function removeSocketFolder(path: string): Promise<void> {
  const name = basename(path);
  if (name !== NEAR && !name.startsWith(TEMPORARY)) return;
  await rm(path, { recursive: true, force: true });
}

/** The `postgresql://` URL of a database behind a socket. */
export function socketUrl(folder: string, database: string): string {
  return `postgresql://${SUPERUSER}@localhost/${database}?host=${encodeURIComponent(folder)}`;
}

function shortTmpdir(): string {
  return fits(join(tmpdir(), `${TEMPORARY}XXXXXX`)) ? tmpdir() : "/tmp";
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, SOCKET_NAME)) <= LONGEST;
}
