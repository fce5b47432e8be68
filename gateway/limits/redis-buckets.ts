import type { FastifyBaseLogger } from "fastify";
import { inTime, TooSlow } from "../../runtime/in-time.ts";
import type { Rate } from "./bucket.ts";
import { SCRIPT, SCRIPT_SHA1 } from "./bucket-script.ts";
import type { Buckets, Verdict } from "./buckets.ts";
import { type RedisClient, RedisLink } from "./redis-link.ts";

const PREFIX = "sandgate:rate-limit:";

interface RedisBucketsOptions {
  /** Such as `redis://127.0.0.1:6379`. */
  url: string;
  rate: Rate;
  log: FastifyBaseLogger;
  /** How long it may take to answer. */
  patienceMs: number;
}

/** Buckets in Redis, which several gateways share. Without Redis nobody counts, and the log says so. */
export class RedisBuckets implements Buckets {
  readonly #link: RedisLink;
  readonly #parameters: string[];
  readonly #patienceMs: number;

  constructor({ url, rate, log, patienceMs }: RedisBucketsOptions) {
    this.#patienceMs = patienceMs;
    this.#link = new RedisLink(url, log);
    this.#parameters = [String(rate.intervalMs * 1_000), String(rate.burst)];
  }

  start(): Promise<void> {
    return this.#link.start();
  }

  close(): void {
    this.#link.close();
  }

  async take(name: string): Promise<Verdict | undefined> {
    const { client } = this.#link;
    if (!client) return undefined;
    try {
      const verdict = readVerdict(await inTime(this.#run(client, PREFIX + name), this.#patienceMs));
      this.#link.good();
      return verdict;
    } catch (error) {
      // Those that follow need not wait for it too, and what it was sent is not kept.
      if (error instanceof TooSlow) this.#link.drop(client);
      this.#link.complain(error);
      return undefined;
    }
  }

  async #run(client: RedisClient, key: string): Promise<unknown> {
    const options = { keys: [key], arguments: this.#parameters };
    try {
      return await client.evalSha(SCRIPT_SHA1, options);
    } catch (error) {
      if (!String(error).includes("NOSCRIPT")) throw error;
      return client.eval(SCRIPT, options);
    }
  }
}

/** @throws Error where that is no answer of the script */
function readVerdict(answer: unknown): Verdict {
  if (!Array.isArray(answer) || answer.length !== 4 || !answer.every(Number.isSafeInteger))
    throw new Error("Redis answered something else than was asked");
  const [admitted, remaining, fullInMs, nextInMs] = answer;
  return { admitted: admitted === 1, remaining, fullInMs, nextInMs };
}
