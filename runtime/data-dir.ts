import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { getSystemErrorMessage } from "node:util";
import { StartupError } from "./errors.ts";

/**
 * Makes the folder where everything that lasts is kept.
 * @param dir absolute path
 * @throws StartupError where it cannot be written
 */
export async function prepareDataDir(dir: string): Promise<void> {
  try {
    await makeFolder(dir);
    // A slash behind it lets a file of that name fail.
    await access(`${dir}/`, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartupError(`The folder ${dir} (DATA_DIR) cannot be written: ${whyOf(error)}`);
  }
}

// One level at a time: mkdir's own recursion never ends under a parent such as /proc, which exists
// and yet answers that it does not.
async function makeFolder(dir: string): Promise<void> {
  if (existsSync(dir)) return;
  await makeFolder(dirname(dir));
  await mkdir(dir).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
}

/**
 * The text of a file that holds a secret; makes it, mode 0600, and its folder, where there is none yet.
 * Of several processes that make it at once, one wins and all get its text.
 * @throws StartupError where it can be neither read nor made
 */
export async function keepSecretFile(path: string, make: () => string): Promise<string> {
  try {
    return (await readSecretFile(path)) ?? (await makeSecret(path, make()));
  } catch (error) {
    throw new StartupError(`The file ${path} cannot be read or made: ${whyOf(error)}`);
  }
}

/** The text of such a file; undefined where there is none. */
export async function readSecretFile(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

// Written whole and then linked: a crash half way leaves no empty secret behind.
async function makeSecret(path: string, text: string): Promise<string> {
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  await makeFolder(dirname(path));
  await writeFile(draft, `${text}\n`, { mode: 0o600, flag: "wx", flush: true });
  try {
    await link(draft, path);
    return text;
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    return (await readFile(path, "utf8")).trim();
  } finally {
    await rm(draft, { force: true });
  }
}

/** The system's code of a failed call, such as `EACCES`; else its message. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}

/** What a failed call of the system means, such as `permission denied`; else the error's message. */
export function whyOf(error: unknown): string {
  const number = error instanceof Error && "errno" in error ? error.errno : undefined;
  if (typeof number === "number") return getSystemErrorMessage(number);
  return error instanceof Error ? error.message : String(error);
}
