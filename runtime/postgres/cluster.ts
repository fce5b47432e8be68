import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { StartupError } from "../errors.ts";
import type { Identity } from "./identity.ts";

export const SUPERUSER = "sandgate";

/**
 * Makes the data folder at the first start. It is made elsewhere and then renamed: an interrupted
 * start leaves nothing that looks finished.
 * @returns its path
 * @throws StartupError with what initdb said
 */
export async function ensureCluster(folder: string, initdb: string, identity: Identity) {
  const data = join(folder, "data");
  if (existsSync(join(data, "PG_VERSION"))) return data;
  const draft = join(folder, "data.new");
  await rm(draft, { recursive: true, force: true });
  await runInitdb(initdb, draft, identity);
  await rename(draft, data);
  return data;
}

async function runInitdb(initdb: string, folder: string, identity: Identity): Promise<void> {
  // No password: only who can enter the socket's folder can connect.
  const [file = "", ...args] = [
    ...identity.prefix,
    initdb,
    `--pgdata=${folder}`,
    `--username=${SUPERUSER}`,
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
  ];
  try {
    await promisify(execFile)(file, args, { cwd: "/", env: plainEnv(), ...identity.user });
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
    throw new StartupError(`PostgreSQL could not make ${folder}: ${lastLine(said)}`);
  }
}

/** No secret of ours in PostgreSQL's environment, and messages in English. */
export function plainEnv(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
}

/** The last complaint, else the last line. */
export function lastLine(output: string): string {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const complaint = lines.findLast((line) => /(FATAL|PANIC|error):/i.test(line));
  return (complaint ?? lines.at(-1) ?? "it said nothing").trim();
}
