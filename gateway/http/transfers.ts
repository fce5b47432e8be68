import type { FastifyReply, FastifyRequest } from "fastify";
import { PublicError } from "../errors.ts";
import type { Ongoing } from "./ongoing.ts";
import { headersOf, roomIn } from "./raw-answer.ts";

const IDLE_MS = 5 * 60_000;

/** Shared by all: the default reason would cost an exception with its stack each. */
const OVER = new Error("the transfer is over");

export interface TransferOptions {
  ongoing: Ongoing;
  /** Aborts `cut` when the key of the request is not good any more. @returns what ends that */
  whileGood(request: FastifyRequest, cut: AbortController): () => void;
  /** How long a transfer may go on without a byte; five minutes unless set. */
  idleMs?: number | undefined;
}

/** Contents on their way in or out, for as long as they move. */
export class Transfers {
  readonly #options: TransferOptions;
  #open = 0;

  constructor(options: TransferOptions) {
    this.#options = options;
  }

  /** How many go on. */
  get open(): number {
    return this.#open;
  }

  /**
   * @param late what is said of one in which nothing moves
   * @throws PublicError (service_unavailable) where the gateway has drained
   */
  begin(request: FastifyRequest, reply: FastifyReply, late: () => PublicError): Transfer {
    const { ongoing, whileGood, idleMs = IDLE_MS } = this.#options;
    const cut = new AbortController();
    const leave = ongoing.enter(cut);
    const release = whileGood(request, cut);
    this.#open += 1;
    const hungUp = () => cut.abort();
    // It may have gone while it was found out who asks.
    if (reply.raw.destroyed) hungUp();
    else reply.raw.once("close", hungUp);
    return new Transfer(
      cut,
      setTimeout(() => cut.abort(late()), idleMs),
      () => {
        this.#open -= 1;
        leave();
        release();
        reply.raw.off("close", hungUp);
      },
    );
  }
}

/** One of them. */
export class Transfer {
  readonly #cut: AbortController;
  readonly #timer: NodeJS.Timeout;
  readonly #release: () => void;

  constructor(cut: AbortController, timer: NodeJS.Timeout, release: () => void) {
    this.#cut = cut;
    this.#timer = timer;
    this.#release = release;
  }

  /** Aborted when it is to end: by a hang-up, a drain, a key that stops, or because nothing moves; and when it has ended. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  /** Ends it early. @param reason what is answered, where it is a PublicError and nothing was sent */
  cut(reason: unknown): void {
    this.#cut.abort(reason);
  }

  /** Says that something moved. */
  moved(): void {
    this.#timer.refresh();
  }

  /** Frees all that it held, and ends what still feeds it. */
  end(): void {
    clearTimeout(this.#timer);
    this.#release();
    this.#cut.abort(OVER);
  }

  /** Why it was cut off where that can be told, else what it failed with. */
  reasonOf(error: unknown): unknown {
    const { reason } = this.#cut.signal;
    return reason instanceof PublicError ? reason : error;
  }
}

/**
 * Answers with chunks, the next one asked for when the one before is on its way.
 * @param chunks what they throw breaks the connection off, for the answer has begun
 */
export async function sendChunks(
  reply: FastifyReply,
  { status, headers }: { status: number; headers: Record<string, string | number> },
  chunks: AsyncIterable<Uint8Array | string> | Iterable<never>,
  transfer: Transfer,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(status, { ...headersOf(reply), ...headers });
  try {
    for await (const chunk of chunks) {
      transfer.moved();
      if (!raw.write(chunk)) await roomIn(raw, transfer.signal);
      if (transfer.signal.aborted) throw transfer.signal.reason;
      transfer.moved();
    }
    raw.end();
  } catch (error) {
    raw.destroy();
    throw error;
  }
}
