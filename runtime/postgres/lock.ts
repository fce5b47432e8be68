import { DatabaseSync } from "node:sqlite";
import { whyOf } from "../data-dir.ts";
import { StartupError } from "../errors.ts";

const SQLITE_BUSY = 5;

/** Another process holds the lock. */
export class LockHeld extends StartupError {}

/**
 * Takes a lock that the kernel drops with the process, however that ends. Node has no file
 * locks of its own; SQLite's are the system's, on an empty file.
 * @returns what gives it back
 * @throws LockHeld where another process holds it; another StartupError where it cannot be taken
 */
export function takeLock(path: string, whenHeld: string): () => void {
  try {
    const file = new DatabaseSync(path, { timeout: 0 });
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return () => file.close();
  } catch (error) {
    const held = error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
    if (held) throw new LockHeld(whenHeld);
    throw new StartupError(`The lock ${path} cannot be taken: ${whyOf(error)}`);
  }
}
