import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const BACKUP = join(import.meta.dirname, "../../deploy/backup");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-backup-password-"));
  for (const name of ["pg_dump", "psql", "pg_restore"])
    await standIn(
      name,
      `printf '%s\\n' "$@" "PGPASSWORD=\${PGPASSWORD-unset}" >"${folder}/${name}.said"
      case $0 in *psql) echo 0 ;; *) cat </dev/null ;; esac`,
    );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A program that writes down how it was called. */
async function standIn(name: string, script: string) {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, name), 0o755);
}

async function said(name: string): Promise<string[]> {
  return (await readFile(join(folder, `${name}.said`), "utf8")).trim().split("\n");
}

function script(name: string, databaseUrl: string, to: string) {
  const env = { PATH: `${folder}:${process.env.PATH}`, DATABASE_URL: databaseUrl };
  return run("sh", [join(BACKUP, name), join(folder, to)], { env });
}

test.each([
  [
    "postgresql://u:p%40%2F%C3%A9'$\\x@h:5432/db?sslmode=require",
    "u@h:5432/db?sslmode=require",
    "p@/é'$\\x",
  ],
  ["postgresql://u:a:b@h,h2:1/db", "u@h,h2:1/db", "a:b"],
  ["postgresql://u@h:5432/db", "u@h:5432/db", "unset"],
  ["postgresql://h:5432/db", "h:5432/db", "unset"],
])("%s: the password is on no command line, and is what it was", async (url, bare, password) => {
  const to = `backup-${Buffer.from(url).toString("hex").slice(-40)}`;
  await script("backup.sh", url, to);
  await script("restore.sh", url, to);
  for (const name of ["pg_dump", "pg_restore"])
    expect(await said(name)).toEqual(
      expect.arrayContaining([`--dbname=postgresql://${bare}`, `PGPASSWORD=${password}`]),
    );
  expect((await said("psql")).slice(-2)).toEqual([
    `postgresql://${bare}`,
    `PGPASSWORD=${password}`,
  ]);
});

test("a password that stands elsewhere is refused, for it would be seen", async () => {
  const refused = script("backup.sh", "postgresql://h/db?user=u&password=hunter2", "none");
  await expect(refused).rejects.toThrow("DATABASE_URL: put the password before the @");
});
