import type { FastifyReply } from "fastify";

/** Aborted when the client goes away before its answer is complete. */
export function hangUpOf({ raw }: FastifyReply): AbortSignal {
  const hangUp = new AbortController();
  raw.once("close", () => {
    if (!raw.writableFinished) hangUp.abort(new Error("the client hung up"));
  });
  return hangUp.signal;
}
