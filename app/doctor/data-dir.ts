import { access, constants, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, whyOf } from "../../runtime/data-dir.ts";
import { type Check, fail, ok, type Subject, skip, warn } from "./check.ts";

/** Files of DATA_DIR that only their owner may read. */
const SECRET_FILES = ["api-key", "secrets-key", "service-token"];
const OF_OTHERS = 0o077;
const GIB = 2 ** 30;
/** Of free disk space, in bytes. */
const SCARCE = 2 * GIB;
const TOO_LITTLE = GIB / 4;

/** The folder of what lasts: whether it can be used, who can read its secrets, how much room there is. */
export async function askDataDir({ config: { dataDir } }: Subject): Promise<Check[]> {
  const folder = await askFolder(dataDir);
  if (folder.status !== "ok") return [folder];
  return [folder, await askSecretFiles(dataDir), await askSpace("disk space", dataDir, "DATA_DIR")];
}

async function askFolder(dataDir: string): Promise<Check> {
  const name = "data folder";
  try {
    await access(`${dataDir}/`, constants.R_OK | constants.W_OK | constants.X_OK);
    return ok(name, `${dataDir} can be read and written`);
  } catch (error) {
    if (codeOf(error) === "ENOENT")
      return skip(name, `${dataDir} (DATA_DIR) does not exist yet: npm start makes it`);
    const seen = `${dataDir} (DATA_DIR) cannot be used: ${whyOf(error)}`;
    return fail(name, seen, "run this and Sandgate as the user who owns the folder");
  }
}

async function askSecretFiles(dataDir: string): Promise<Check> {
  const name = "secret files";
  const modes = await Promise.all(
    SECRET_FILES.map(async (file) => {
      const path = join(dataDir, file);
      return { path, mode: (await stat(path).catch(() => undefined))?.mode };
    }),
  );
  const there = modes.filter(({ mode }) => mode !== undefined);
  const open = there.filter(({ mode = 0 }) => (mode & OF_OTHERS) !== 0).map(({ path }) => path);
  if (open.length > 0)
    return fail(name, `others may read ${open.join(", ")}`, `chmod 600 ${open.join(" ")}`);
  return ok(name, `only their owner may read the ${there.length} that are there`);
}

/** How much room a folder has; `variable` is the setting that names it. */
export async function askSpace(name: string, folder: string, variable: string): Promise<Check> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const seen = `${(free / GIB).toFixed(1)} GiB are free where ${folder} is`;
  const mend = `free some, or move ${variable} to a larger disk`;
  if (free < TOO_LITTLE) return fail(name, seen, mend);
  return free < SCARCE ? warn(name, seen, mend) : ok(name, seen);
}
