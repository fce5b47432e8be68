import type { FastifyBaseLogger, FastifyReply } from "fastify";
import type { RateLimitConfig } from "../../runtime/config.ts";
import { rateLimited } from "../errors.ts";
import type { Buckets } from "./buckets.ts";
import { MemoryBuckets } from "./memory-buckets.ts";
import { RedisBuckets } from "./redis-buckets.ts";

/** How often each key may ask. */
export class RateLimits {
  readonly #burst: number;
  /** Undefined: as often as it likes. */
  readonly #buckets: Buckets | undefined;

  /** @param patienceMs how long Redis may take to answer */
  constructor(
    { perSecond, burst, redisUrl }: RateLimitConfig,
    log: FastifyBaseLogger,
    patienceMs = 50,
  ) {
    this.#burst = burst;
    if (perSecond === 0) return;
    const rate = { burst, intervalMs: 1_000 / perSecond };
    this.#buckets =
      redisUrl === undefined
        ? new MemoryBuckets(rate)
        : new RedisBuckets({ url: redisUrl, rate, log, patienceMs });
  }

  /** Returns when it counts, or when it is plain that nobody does for now. */
  async start(): Promise<void> {
    await this.#buckets?.start();
  }

  close(): void {
    this.#buckets?.close();
  }

  /**
   * Counts a request, and says in its answer what is left.
   * @throws PublicError (rate_limited)
   */
  async admit(apiKeyId: string, reply: FastifyReply): Promise<void> {
    const verdict = await this.#buckets?.take(apiKeyId);
    if (!verdict) return;
    reply.headers({
      "ratelimit-limit": this.#burst,
      "ratelimit-remaining": verdict.remaining,
      "ratelimit-reset": Math.ceil(verdict.fullInMs / 1_000),
    });
    if (!verdict.admitted) throw rateLimited(verdict.nextInMs);
  }
}
