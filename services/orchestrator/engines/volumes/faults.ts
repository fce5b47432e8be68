import { EngineUnavailable } from "../engine.ts";
import { FileFault } from "../volume-store.ts";

const LONGEST_SHOWN = 200;

/** @param what goes on after the path, such as `does not exist` */
export function fault(why: FileFault["why"], path: string, what: string): FileFault {
  const shown = path.length > LONGEST_SHOWN ? `${path.slice(0, LONGEST_SHOWN)}…` : path;
  return new FileFault(why, `${JSON.stringify(shown)} ${what}`);
}

/** What the kernel said, such as `ENOENT`; undefined: this error is not the kernel's. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether the kernel said one of these. */
export function isCode(error: unknown, ...codes: string[]): boolean {
  const code = codeOf(error);
  return code !== undefined && codes.includes(code);
}

/** An error of the caller's own code, which goes back to him as it is. */
export class CallersError extends Error {
  override name = "CallersError";
}

/** @throws CallersError in place of what it throws */
export async function ofCaller<T>(ask: () => PromiseLike<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    throw new CallersError("the caller's", { cause });
  }
}

const FAULTS: Record<string, [FileFault["why"], string]> = {
  ENOENT: ["missing", "does not exist"],
  ENOTDIR: ["missing", "does not exist: what should be a directory is none"],
  ELOOP: ["missing", "leads nowhere: its links go round in circles"],
  ENAMETOOLONG: ["outside", "is too long"],
  EXDEV: ["outside", "leaves the volume"],
  EEXIST: ["conflict", "is there already"],
  ENOTEMPTY: ["conflict", "is a directory with content"],
  EISDIR: ["conflict", "is a directory"],
  EBUSY: ["conflict", "is in use"],
  EMLINK: ["conflict", "cannot hold more"],
  EPERM: ["conflict", "may not be changed"],
  EACCES: ["conflict", "may not be reached"],
  ETXTBSY: ["conflict", "is being run"],
  EAGAIN: ["conflict", "is locked by a sandbox"],
};

/** @throws FileFault, or EngineUnavailable where it is the host's trouble; never a path of the host */
export async function guarded<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw translated(path, error);
  }
}

/** The same for what comes bit by bit. */
export async function* guardedEach<T>(
  path: string,
  act: () => AsyncIterable<T>,
): AsyncGenerator<T> {
  try {
    yield* act();
  } catch (error) {
    throw translated(path, error);
  }
}

function translated(path: string, error: unknown): unknown {
  if (error instanceof CallersError) return error.cause;
  const code = codeOf(error);
  if (code === undefined) return error;
  const known = FAULTS[code];
  if (known) return fault(known[0], path, known[1]);
  const sentence = `the files of volumes cannot be worked with now (${code})`;
  return new EngineUnavailable(sentence, { cause: error });
}
