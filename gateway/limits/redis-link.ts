import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyBaseLogger } from "fastify";
import { inTime } from "../../runtime/in-time.ts";

const CONNECT_MS = 1_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
const COMPLAIN_EVERY_MS = 60_000;

export type RedisClient = Awaited<ReturnType<typeof newClient>>;

/** A connection to Redis that is made again whenever it is lost; nothing is queued meanwhile. */
export class RedisLink {
  readonly #url: string;
  readonly #log: FastifyBaseLogger;
  readonly #end = new AbortController();
  #client: RedisClient | undefined;
  #lost = Promise.withResolvers<void>();
  #pauseMs = MIN_PAUSE_MS;
  #complained = Number.NEGATIVE_INFINITY;

  /** @param url such as `redis://127.0.0.1:6379` */
  constructor(url: string, log: FastifyBaseLogger) {
    this.#url = url;
    this.#log = log;
  }

  /** Undefined: there is no Redis now. */
  get client(): RedisClient | undefined {
    return this.#client?.isReady ? this.#client : undefined;
  }

  /** Returns after the first attempt. */
  async start(): Promise<void> {
    await this.#connect();
    void this.#keep();
  }

  close(): void {
    this.#end.abort();
    if (this.#client) this.drop(this.#client);
  }

  /** Gives a connection up, with what is under way on it. */
  drop(client: RedisClient): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    if (client.isOpen) client.destroy();
    this.#lost.resolve();
  }

  /** Redis did what it is for: when it is lost, it may be looked for at once. */
  good(): void {
    this.#pauseMs = MIN_PAUSE_MS;
  }

  /** Once a minute. */
  complain(err: unknown): void {
    const now = performance.now();
    if (this.#end.signal.aborted || now - this.#complained < COMPLAIN_EVERY_MS) return;
    this.#complained = now;
    this.#log.warn({ err }, "Redis does not count requests: they pass, whatever the rate limits");
  }

  async #keep(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#lost.promise;
      await sleep(this.#pauseMs, undefined, { signal }).catch(() => undefined);
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      if (!signal.aborted) await this.#connect();
    }
  }

  async #connect(): Promise<void> {
    this.#lost = Promise.withResolvers();
    const client = await newClient(this.#url).catch((error) => this.complain(error));
    if (!client) return this.#lost.resolve();
    this.#client = client;
    const fail = (error: unknown) => {
      this.complain(error);
      this.drop(client);
    };
    client.on("error", fail);
    await inTime(client.connect(), CONNECT_MS).catch(fail);
    if (this.#end.signal.aborted) this.drop(client);
  }
}

// Loaded where it is used: most gateways have no Redis.
async function newClient(url: string) {
  const { createClient } = await import("@redis/client");
  // A connection that is lost is given up: what was sent on it must not be sent again later.
  const socket = { connectTimeout: CONNECT_MS, reconnectStrategy: false } as const;
  return createClient({ url, RESP: 2, disableOfflineQueue: true, socket });
}
