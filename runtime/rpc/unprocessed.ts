/** Errors of calls that no server has begun with; a mark on the error itself, for it is wrapped on its way. */
const unprocessed = new WeakSet<object>();

/** @param error of one call alone: a mark on one that others fail with too would speak for them */
export function markUnprocessed<T extends object>(error: T): T {
  unprocessed.add(error);
  return error;
}

/** Whether a call that failed so was surely never processed, so that it may be made again whatever it does. */
export function isUnprocessed(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (unprocessed.has(at)) return true;
  return false;
}
