import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { serviceUnavailable } from "../errors.ts";

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ":\n\n";

/** Answers that go on: server-sent events. One timer keeps all of them alive. */
export class EventStreams {
  readonly #open = new Map<ServerResponse, AbortController>();
  #timer: NodeJS.Timeout | undefined;
  #draining = false;

  /** How many there are. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Answers with events until they end, fail, or the client hangs up. A client that does not read holds the events up, for the
   * next is asked for when the one before is on its way.
   * @param events each a whole event; what they throw breaks the answer off
   * @param cut aborted by a drain
   * @returns when the answer is over
   * @throws PublicError (service_unavailable) before anything is sent, where the gateway drains
   */
  async send(
    reply: FastifyReply,
    events: AsyncIterator<string>,
    cut: AbortController,
  ): Promise<void> {
    if (this.#draining) throw serviceUnavailable("shutting down");
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { ...headersOf(reply), ...EVENT_STREAM });
    raw.flushHeaders();
    this.#add(raw, cut);
    try {
      for (let next = await events.next(); !next.done && raw.writable; next = await events.next())
        if (!raw.write(next.value)) await drained(raw, cut.signal);
    } finally {
      this.#remove(raw);
      raw.end();
    }
  }

  /** Ends every answer where it is, for the client to resume elsewhere, and lets none begin. */
  drain(): void {
    this.#draining = true;
    for (const cut of this.#open.values()) cut.abort();
  }

  #add(raw: ServerResponse, cut: AbortController): void {
    this.#open.set(raw, cut);
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
    for (const raw of this.#open.keys()) if (!raw.writableNeedDrain) raw.write(HEARTBEAT);
  }
}

/** Nothing on the way may keep them back, and the connection is not for another request. */
const EVENT_STREAM = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  connection: "close",
};

// What hooks have set, such as the request id.
function headersOf(reply: FastifyReply): Record<string, string | number | string[]> {
  const given = Object.entries(reply.getHeaders());
  return Object.fromEntries(given.flatMap(([k, v]) => (v === undefined ? [] : [[k, v]])));
}

/** Returns when there is room again, or when the signal says that it is of no use. */
async function drained(raw: ServerResponse, signal: AbortSignal): Promise<void> {
  await once(raw, "drain", { signal }).catch(() => undefined);
}
