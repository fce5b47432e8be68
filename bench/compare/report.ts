import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { versionOf } from "./database.ts";
import { openGround } from "./ground.ts";

const FILE = join(import.meta.dirname, "../../docs/measured.md");
const BEGIN = "<!-- npm run bench begins -->";
const END = "<!-- npm run bench ends -->";

/** On what it was measured, and when. */
export async function machine(): Promise<string> {
  const all = cpus();
  const date = new Date().toISOString().slice(0, 10);
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  const ground = await openGround();
  const postgres = await versionOf(ground.databaseUrl).finally(ground.close);
  return `${date}, ${all.length} cores of ${all[0]?.model.trim()}, Node ${process.versions.node}, PostgreSQL ${postgres}, commit ${commit}`;
}

/** Puts lines where the last ones were. */
export async function write(lines: readonly string[]): Promise<void> {
  const text = await readFile(FILE, "utf8");
  await writeFile(FILE, between(text, lines));
}

/** @throws Error where the text has no place for them */
export function between(text: string, lines: readonly string[]): string {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`there are no lines "${BEGIN}" and "${END}"`);
  const body = ["", ...lines, ""].join("\n");
  return `${text.slice(0, from + BEGIN.length)}\n${body}\n${text.slice(to)}`;
}
