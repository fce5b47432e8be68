import type { TarEntry } from "../write-tar.ts";
import type { Change, Overlay } from "./overlay.ts";

/** A tar of changes, and what no tar can say. */
export interface PatchArchive {
  entries: TarEntry[];
  /** Paths that are there now and are not to be. */
  removals: { path: string; by: string }[];
}

/** Pure but for what the overlay reads. */
export async function archiveOf(overlay: Overlay): Promise<PatchArchive> {
  const archive: PatchArchive = { entries: [], removals: [] };
  for await (const { path, change, over } of overlay.changes()) {
    const name = path.slice(1);
    if (change.kind === "absent") {
      if (over) archive.removals.push({ path, by: change.by });
      continue;
    }
    // A directory over a directory would keep what is in it; a file in between does away with that.
    if (change.kind === "directory" && change.fresh && over?.kind === "directory")
      archive.entries.push({ header: { name, type: "file" }, content: [] });
    archive.entries.push(entryOf(name, change));
  }
  return archive;
}

type Written = Exclude<Change, { kind: "absent" }>;

// The library takes a mode of 0 for none, and writes the permissions alone.
const REGULAR = 0o100000;

function entryOf(name: string, change: Written): TarEntry {
  if (change.kind === "link")
    return { header: { name, type: "symlink", linkname: change.target }, content: [] };
  const { kind, uid, gid } = change;
  const header = { name, type: kind, mode: change.mode | REGULAR, uid, gid };
  return { header, content: change.kind === "file" ? change.content : [] };
}
