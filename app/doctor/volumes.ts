import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, whyOf } from "../../runtime/data-dir.ts";
import { MARK_FILE, readMark } from "../../services/orchestrator/engines/volumes/marked-volumes.ts";
import { type Check, fail, ok, type Subject, skip } from "./check.ts";
import { askSpace } from "./data-dir.ts";

const NAME = "volumes folder";

/** The folder of volumes: whether it is there, is the one that this installation's volumes are in, and has room. */
export async function askVolumes({ config, facts }: Subject): Promise<Check[]> {
  const folder = config.engine.volumesDir;
  const check = await askFolder(folder, facts.volumesMark);
  if (check.status !== "ok") return [check];
  return [check, await askSpace("volumes' disk space", folder, "VOLUMES_DIR")];
}

async function askFolder(folder: string, mark: string | null | undefined): Promise<Check> {
  try {
    await access(`${folder}/`, constants.R_OK | constants.W_OK | constants.X_OK);
    const found = await readMark(join(folder, MARK_FILE));
    if (mark === undefined)
      return skip(NAME, `whose ${folder} is cannot be said without a database`);
    if (mark === null || mark === found)
      return ok(NAME, `${folder} can be read and written, and is this installation's`);
    return foreign(folder, found === undefined ? "bears no mark" : "bears the mark of another one");
  } catch (error) {
    if (codeOf(error) !== "ENOENT")
      return fail(
        NAME,
        `${folder} (VOLUMES_DIR) cannot be used: ${whyOf(error)}`,
        "run this and Sandgate as the user who owns the folder",
      );
    if (mark) return foreign(folder, "does not exist");
    return skip(NAME, `${folder} (VOLUMES_DIR) does not exist yet: the first file makes it`);
  }
}

// Files would be missing from there, not lost.
function foreign(folder: string, why: string): Check {
  const seen = `${folder} is not the folder that this installation's volumes are in: it ${why}`;
  return fail(
    NAME,
    seen,
    "mount its disk, or set VOLUMES_DIR (else DATA_DIR) to where the volumes are; until then they are refused",
  );
}
