import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A migration as it lies in this version's folder. */
export interface Migration {
  name: string;
  sql: string;
  /** SHA-256 of the file, in hexadecimal. */
  checksum: string;
  /** A contract step: the migration whose release stopped to use what this one takes away. */
  after: string | undefined;
}

export const MIGRATIONS = fileURLToPath(new URL("./migrations", import.meta.url));

/** The line that marks a contract step. */
const CONTRACT = /^-- contract, after (\S+)$/m;

/**
 * The migrations of a folder, in the order in which they are applied.
 * @param folder of folders, each with a `migration.sql`
 * @throws Error where a contract step names none that is applied before it
 */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const migrations = await Promise.all(
    names.sort().map(async (name) => {
      const sql = await readFile(join(folder, name, "migration.sql"), "utf8");
      const checksum = createHash("sha256").update(sql).digest("hex");
      return { name, sql, checksum, after: CONTRACT.exec(sql)?.[1] };
    }),
  );
  for (const { name, after } of migrations)
    if (after !== undefined && !(names.includes(after) && after < name))
      throw new Error(`The migration ${name} contracts after ${after}, which is none before it`);
  return migrations;
}
