import { LRUCache } from "lru-cache";
import { PublicError, rateLimited, serviceUnavailable } from "../errors.ts";
import { levelOf, type Rate, withoutToken } from "../limits/bucket.ts";

const RATE: Rate = { burst: 20, intervalMs: 1_000 };
const PLACES = 10_000;

/** Where requests come from. */
interface Source {
  /** Its bucket; see limits/bucket.ts. */
  fullAt: number;
  /** Attempts under way. */
  open: number;
  /** Settled when the next one under way ends; there when somebody waits for that. */
  ended: PromiseWithResolvers<void> | undefined;
}

/**
 * Bounds how often an address may be wrong about a key: each failure takes a token, and without one nothing is tried.
 * No more is tried at once than there are tokens; the rest waits for its turn.
 */
export class Guesses {
  readonly #sources: LRUCache<string, Source>;
  readonly #patienceMs: number;

  /** @param patienceMs how long an attempt may wait for its turn */
  constructor(patienceMs: number, places = PLACES) {
    this.#patienceMs = patienceMs;
    this.#sources = new LRUCache({ max: places });
  }

  /**
   * Tries a key that is not known to be good.
   * @param known looks for what may have become known while this waited
   * @throws PublicError (rate_limited) where too many were wrong; (service_unavailable) where its turn does not come;
   *   whatever `attempt` throws
   */
  async attempt<T>(
    address: string,
    known: () => T | undefined,
    attempt: () => Promise<T>,
  ): Promise<T> {
    const source = this.#sourceOf(address);
    const deadline = performance.now() + this.#patienceMs;
    while (source.open >= tokensOf(source)) {
      if (performance.now() > deadline) throw serviceUnavailable();
      source.ended ??= Promise.withResolvers();
      await source.ended.promise;
      const found = known();
      if (found !== undefined) return found;
    }
    return run(source, attempt);
  }

  /**
   * Counts one that needs no try to be wrong.
   * @returns whether its turn had come; else it is an attempt like others
   * @throws PublicError (rate_limited) where too many were wrong
   */
  fail(address: string): boolean {
    const source = this.#sourceOf(address);
    const isItsTurn = source.open < tokensOf(source);
    if (isItsTurn) takeToken(source);
    return isItsTurn;
  }

  #sourceOf(address: string): Source {
    const known = this.#sources.get(address);
    if (known) return known;
    const source = { fullAt: Number.NEGATIVE_INFINITY, open: 0, ended: undefined };
    this.#sources.set(address, source);
    return source;
  }
}

/** @throws PublicError (rate_limited) where there is none */
function tokensOf({ fullAt }: Source): number {
  const { remaining, nextInMs } = levelOf(fullAt, performance.now(), RATE);
  if (remaining < 1) throw rateLimited(nextInMs);
  return remaining;
}

async function run<T>(source: Source, attempt: () => Promise<T>): Promise<T> {
  source.open += 1;
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof PublicError && error.code === "invalid_api_key") takeToken(source);
    throw error;
  } finally {
    source.open -= 1;
    source.ended?.resolve();
    source.ended = undefined;
  }
}

function takeToken(source: Source): void {
  source.fullAt = withoutToken(source.fullAt, performance.now(), RATE);
}
