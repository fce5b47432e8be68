import { Code, ConnectError } from "@connectrpc/connect";
import type { WriteFileRequest } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { invalidRequest, ServiceError } from "../../../runtime/errors.ts";
import type { WriteTarget } from "../domain/files/write-file.ts";
import { targetFromMessage } from "../file-messages.ts";

/** How long nothing may come of an upload. */
const SILENCE_MS = 5 * 60_000;

/** A file as it comes in: its target has come, its content is asked for piece by piece. */
export interface Upload {
  target: WriteTarget;
  content: AsyncIterable<Uint8Array>;
  /** Nothing more of it is wanted. */
  end(): void;
}

/**
 * Reads the target of an upload.
 * @param signal aborted when its sender is gone
 * @throws ServiceError INVALID_REQUEST where something else comes first; ConnectError where it breaks off
 */
export async function receiveUpload(
  messages: AsyncIterable<WriteFileRequest>,
  signal: AbortSignal,
  silenceMs = SILENCE_MS,
): Promise<Upload> {
  const arriving = new Arriving(messages, signal, silenceMs);
  try {
    const first = await arriving.next();
    if (first?.part.case !== "target") throw fault("target", "must come first, and once");
    const target = targetFromMessage(first.part.value);
    const content = contentOf(arriving, target.length !== null);
    return { target, content, end: () => arriving.end() };
  } catch (error) {
    arriving.end();
    throw error;
  }
}

/** @param isWhole says that whoever reads it knows by its length whether all of it came */
async function* contentOf(arriving: Arriving, isWhole: boolean): AsyncGenerator<Uint8Array> {
  let ended = false;
  for (;;) {
    const message = await arriving.next();
    if (!message) break;
    if (message.part.case === "target") throw fault("target", "must come first, and once");
    if (ended) throw fault("end", "must come last");
    if (message.part.case === "data") yield message.part.value;
    else ended = true;
  }
  if (!ended && !isWhole) throw fault("end", "must come last where no length was named");
}

/** Messages that are waited for, but not without end. */
class Arriving {
  readonly #source: AsyncIterator<WriteFileRequest>;
  readonly #signal: AbortSignal;
  readonly #silenceMs: number;

  constructor(messages: AsyncIterable<WriteFileRequest>, signal: AbortSignal, silenceMs: number) {
    this.#source = messages[Symbol.asyncIterator]();
    this.#signal = signal;
    this.#silenceMs = silenceMs;
  }

  /** @returns undefined at the end */
  next(): Promise<WriteFileRequest | undefined> {
    return new Promise((resolve, reject) => {
      const over = () => {
        clearTimeout(timer);
        this.#signal.removeEventListener("abort", onAbort);
      };
      const fail = (error: unknown) => {
        over();
        reject(error);
      };
      const onAbort = () => fail(brokenOff(this.#signal.reason));
      const secs = this.#silenceMs / 1_000;
      const timer = setTimeout(
        () => fail(fault("data", `nothing came for ${secs} s`)),
        this.#silenceMs,
      );
      if (this.#signal.aborted) return onAbort();
      this.#signal.addEventListener("abort", onAbort, { once: true });
      this.#source.next().then(
        ({ done, value }) => {
          if (this.#signal.aborted) return onAbort();
          over();
          resolve(done ? undefined : value);
        },
        (error: unknown) => fail(brokenOff(error)),
      );
    });
  }

  /** Not waited for: a source that is silent ends when it speaks again, or never. */
  end(): void {
    this.#source.return?.().catch(() => undefined);
  }
}

// A refused message stays what it is. Anything else is the sender's doing, and nothing to be logged as ours.
function brokenOff(error: unknown): Error {
  if (error instanceof ServiceError) return error;
  if (error instanceof ConnectError && error.code === Code.DeadlineExceeded) return error;
  return new ConnectError("the upload broke off", Code.Canceled);
}

function fault(field: string, message: string): ServiceError {
  return invalidRequest([{ field, message }]);
}
