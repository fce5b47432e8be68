import type { FastifyReply } from "fastify";

/** Aborted when the client goes away before its answer is complete. */
export function hangUpOf({ raw }: FastifyReply): AbortSignal {
  const hangUp = new AbortController();
  const closed = () => {
    if (!raw.writableFinished) hangUp.abort(new Error("the client hung up"));
  };
  // It may have gone while it was found out who asks.
  if (raw.destroyed) closed();
  else raw.once("close", closed);
  return hangUp.signal;
}
