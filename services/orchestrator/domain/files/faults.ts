import { type Reason, ServiceError } from "../../../../runtime/errors.ts";
import { EngineUnavailable } from "../../engines/engine.ts";
import { FileFault } from "../../engines/volume-store.ts";
import type { FilesContext } from "./context.ts";

const REASONS: Readonly<Record<FileFault["why"], Reason>> = {
  outside: "INVALID_VOLUME_PATH",
  missing: "VOLUME_FILE_NOT_FOUND",
  conflict: "FILE_CONFLICT",
};

/** What the disk says that volumes are on; whoever runs it has to mend that. */
const OF_THE_DISK: Readonly<Record<string, string>> = {
  ENOSPC: "the disk that volumes are on is full",
  EDQUOT: "the disk that volumes are on is full",
  EROFS: "the disk that volumes are on can only be read",
};

/** A store's error as a client gets it; what nobody expects stays as it is. */
export function translate(ctx: Pick<FilesContext, "complain">, error: unknown): unknown {
  if (error instanceof FileFault) return new ServiceError(REASONS[error.why], error.message);
  const ofDisk = OF_THE_DISK[codeOf(error) ?? ""];
  if (ofDisk === undefined && !(error instanceof EngineUnavailable)) return error;
  ctx.complain(error);
  const sentence = ofDisk ?? "the files of volumes cannot be reached now";
  // Shown to the public, for it names nothing of the host.
  return new ServiceError("SERVICE_UNAVAILABLE", sentence, { metadata: { public: "true" } });
}

/** What the kernel said, where an error or its cause is of it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const known = "code" in error ? error.code : undefined;
  return typeof known === "string" ? known : codeOf(error.cause);
}
