import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Ongoing } from "./ongoing.ts";
import { headersOf, roomIn } from "./raw-answer.ts";

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ":\n\n";

/** Answers that go on: server-sent events. One timer keeps all of them alive. */
export class EventStreams {
  readonly #ongoing: Ongoing;
  readonly #open = new Set<ServerResponse>();
  #timer: NodeJS.Timeout | undefined;

  constructor(ongoing: Ongoing) {
    this.#ongoing = ongoing;
  }

  /** How many go on. */
  get open(): number {
    return this.#open.size;
  }

  /**
   * Answers with events until they end, fail, or the client hangs up. A client that does not read holds the events up, for the
   * next is asked for when the one before is on its way.
   * @param events each a whole event; what they throw breaks the answer off
   * @param cut aborted by a drain
   * @returns when the answer is over
   */
  async send(
    reply: FastifyReply,
    events: AsyncIterator<string>,
    cut: AbortController,
  ): Promise<void> {
    const leave = this.#ongoing.follow(cut);
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { ...headersOf(reply), ...EVENT_STREAM });
    raw.flushHeaders();
    this.#add(raw);
    try {
      for (let next = await events.next(); !next.done && raw.writable; next = await events.next())
        if (!raw.write(next.value)) await roomIn(raw, cut.signal);
    } finally {
      leave();
      this.#remove(raw);
      raw.end();
    }
  }

  #add(raw: ServerResponse): void {
    this.#open.add(raw);
    this.#timer ??= setInterval(() => this.#beat(), HEARTBEAT_MS);
  }

  #remove(raw: ServerResponse): void {
    this.#open.delete(raw);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  // One that does not read gets none: it would only pile up.
  #beat(): void {
    for (const raw of this.#open) if (!raw.writableNeedDrain) raw.write(HEARTBEAT);
  }
}

/** Nothing on the way may keep them back, and the connection is not for another request. */
const EVENT_STREAM = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  connection: "close",
};
