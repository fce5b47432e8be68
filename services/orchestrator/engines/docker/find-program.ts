import { posix } from "node:path";

/** A file of the sandbox's disk, links followed. */
export interface DiskFile {
  /** Absolute, without links. */
  path: string;
  kind: "file" | "directory" | "other";
  executable: boolean;
}

/** Read access to the disk of a container that does not run. */
export interface Disk {
  /** Undefined: there is no such file. */
  stat(path: string): Promise<DiskFile | undefined>;
  /** What a script's first line names; undefined: it is no script. */
  interpreter(path: string): Promise<string | undefined>;
}

export interface SearchPath {
  /** The value of PATH; undefined: Docker's own. */
  path: string | undefined;
  workdir: string;
}

/** Where programs are looked for without a PATH: Docker's own. */
export const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Looks a program up as the kernel and execvp will.
 * @returns undefined when it can be run, else why not, as the end of a sentence that begins with its name
 */
export async function whyNotRunnable(
  disk: Disk,
  program: string,
  search: SearchPath,
): Promise<string | undefined> {
  const seen: DiskFile[] = [];
  for (const path of candidates(program, search)) {
    const file = await disk.stat(path);
    if (file?.kind === "file" && file.executable)
      return await whyNotInterpreted(disk, file, search.workdir);
    if (file) seen.push(file);
  }
  if (seen.length === 0) return "is not in the image";
  return seen.some(({ kind }) => kind === "file") ? "is not executable" : "is not a file";
}

function candidates(program: string, { path = DEFAULT_PATH, workdir }: SearchPath): string[] {
  if (program === "") return [];
  if (program.includes("/")) return [posix.resolve(workdir, program)];
  return path.split(":").map((directory) => posix.resolve(workdir, directory, program));
}

// A script whose interpreter is missing is "not found" to the kernel, which puzzles everybody.
async function whyNotInterpreted(
  disk: Disk,
  file: DiskFile,
  workdir: string,
): Promise<string | undefined> {
  const interpreter = await disk.interpreter(file.path);
  if (interpreter === undefined) return undefined;
  const found = await disk.stat(posix.resolve(workdir, interpreter));
  if (found?.kind === "file" && found.executable) return undefined;
  return `needs ${interpreter}, which is not in the image`;
}
