/** How a bucket of tokens fills. */
export interface Rate {
  /** Tokens in a full bucket. */
  burst: number;
  /** How long one token takes to come back, in milliseconds. */
  intervalMs: number;
}

/** A look into a bucket. */
export interface Level {
  /** Whole tokens. */
  remaining: number;
  /** Milliseconds until it is full. */
  fullInMs: number;
  /** Milliseconds until there is a token. */
  nextInMs: number;
}

// Of a token: sums of intervals that are no binary fractions are not exact.
const ROUNDING = 0.0001;

/** @param fullAt the bucket: when it will be full; in the past, it is */
export function levelOf(fullAt: number, now: number, { burst, intervalMs }: Rate): Level {
  const fullInMs = Math.min(Math.max(fullAt - now, 0), burst * intervalMs);
  return {
    remaining: Math.floor(burst - fullInMs / intervalMs + ROUNDING),
    fullInMs,
    nextInMs: Math.max(fullInMs - (burst - 1) * intervalMs, 0),
  };
}

/** The bucket with one token less. */
export function withoutToken(fullAt: number, now: number, { intervalMs }: Rate): number {
  return Math.max(fullAt, now) + intervalMs;
}
