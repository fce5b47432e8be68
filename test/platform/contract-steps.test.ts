import { expect, test } from "vitest";
import { MIGRATIONS, readMigrations } from "../../prisma/migration-files.ts";

// A process of the release before works on the schema of this one, so a migration only adds; what takes something
// away, or asks for more, is a contract step and says after which release.

/** The last migration from before there was this rule. */
const BEFORE = "20261121190300_volfiles";

const TAKES = [
  /\bDROP\s+(?!CONSTRAINT\b|INDEX\b|TRIGGER\b|DEFAULT\b|NOT\s+NULL\b)/i,
  /\bRENAME\b/i,
  /\bSET\s+NOT\s+NULL\b/i,
  /\bALTER\s+(?:COLUMN\s+)?\w+\s+(?:SET\s+DATA\s+)?TYPE\b/i,
  /\bADD\s+(?:COLUMN\s+)?(?!CONSTRAINT\b)\w+(?:(?!\bDEFAULT\b|\bGENERATED\b|,|;)[\s\S])*\bNOT\s+NULL\b(?!(?:(?!,|;)[\s\S])*\b(?:DEFAULT|GENERATED)\b)/i,
  /\bTRUNCATE\b/i,
];

/** What of a migration a process of before would not survive. Bodies of functions run later, and are not looked at. */
function taking(sql: string): string[] {
  const statements = sql
    .replaceAll(/--.*$/gm, "")
    .replaceAll(/(?<!\bDO\s*)(\$\w*\$)[\s\S]*?\1/g, "");
  return TAKES.flatMap((pattern) => pattern.exec(statements)?.[0] ?? []);
}

test("migrations only add, or say that they are a contract step", async () => {
  const later = (await readMigrations(MIGRATIONS)).filter(({ name }) => name > BEFORE);
  const wrong = later.filter(({ sql, after }) => after === undefined && taking(sql).length > 0);
  expect(wrong.map(({ name, sql }) => [name, taking(sql)])).toEqual([]);
});

test.each([
  "DROP TABLE sandbox.runs",
  "ALTER TABLE t DROP COLUMN a",
  "ALTER TABLE t DROP a",
  "DROP FUNCTION sandbox.f(int)",
  "ALTER TABLE t RENAME COLUMN a TO b",
  "ALTER TABLE t RENAME TO u",
  "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
  "ALTER TABLE t ALTER a TYPE bigint",
  "ALTER TABLE t ALTER COLUMN a SET DATA TYPE bigint",
  "ALTER TABLE t ADD COLUMN a int NOT NULL",
  "ALTER TABLE t ADD a int NOT NULL, ADD b int DEFAULT 1",
  "TRUNCATE t",
  "DO $$ BEGIN ALTER TABLE t DROP COLUMN a; END $$",
])("takes something away: %s", (sql) => {
  expect(taking(sql)).not.toEqual([]);
});

test.each([
  "ALTER TABLE t ADD COLUMN a int NOT NULL DEFAULT 1",
  "ALTER TABLE t ADD COLUMN a int DEFAULT 1 NOT NULL, ADD COLUMN b text",
  "ALTER TABLE t ADD COLUMN a int; CREATE TABLE u (n int NOT NULL)",
  "ALTER TABLE t ALTER a DROP NOT NULL",
  "ALTER TABLE t DROP CONSTRAINT c, ADD CONSTRAINT c CHECK (a > 0 OR b IS NOT NULL)",
  "CREATE INDEX i ON t (a); DROP INDEX j",
  "-- DROP TABLE t\nCREATE TABLE u (n int)",
  "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN DELETE FROM t; DROP TABLE x; END $f$",
])("only adds: %s", (sql) => {
  expect(taking(sql)).toEqual([]);
});
