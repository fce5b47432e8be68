import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const VERSION = "0.6.18";
const FOLDER = join(import.meta.dirname, `../../node_modules/.cache/microsandbox-${VERSION}`);

/**
 * The folder with the official SDK in it. It is not among our dependencies, because an npm on
 * Node 20 leaves out its native part; here npm runs on our own Node.
 */
export async function installSdk(): Promise<string> {
  if (existsSync(join(FOLDER, "node_modules/@superradcompany"))) return FOLDER;
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, "package.json"), '{"private": true, "type": "module"}');
  const bin = join(import.meta.dirname, "../../node_modules/.bin");
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  await run("npm", ["install", "--no-audit", `microsandbox@${VERSION}`], { cwd: FOLDER, env });
  return FOLDER;
}
