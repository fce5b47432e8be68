import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const BACKUP = join(import.meta.dirname, "../../deploy/backup");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-backup-scripts-"));
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

function script(name: string, databaseUrl: string, to: string, more: Record<string, string> = {}) {
  const env = { PATH: `${folder}:${process.env.PATH}`, DATABASE_URL: databaseUrl, ...more };
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

test.skipIf(process.getuid?.() !== 0)(
  "volumes are restored into a file system of their own; what failed half way says how to go on",
  async () => {
    const url = "postgresql://h/db";
    const from = { VOLUMES_DIR: join(folder, "from") };
    const to = { VOLUMES_DIR: join(folder, "to") };
    await mkdir(from.VOLUMES_DIR);
    await writeFile(join(from.VOLUMES_DIR, "file"), "kept");
    await mkdir(join(to.VOLUMES_DIR, "lost+found"), { recursive: true });
    await script("backup.sh", url, "volumes", from);
    const whole = await readFile(join(folder, "pg_restore"), "utf8");
    await standIn("pg_restore", "exit 1");
    await expect(script("restore.sh", url, "volumes", to)).rejects.toThrow(
      "pg_restore failed: empty VOLUMES_DIR before you try again",
    );
    await expect(script("restore.sh", url, "volumes", to)).rejects.toThrow("is not empty");
    await rm(join(to.VOLUMES_DIR, "file"));
    await writeFile(join(folder, "pg_restore"), whole);
    await script("restore.sh", url, "volumes", to);
    expect(await readFile(join(to.VOLUMES_DIR, "file"), "utf8")).toBe("kept");
  },
);
