import type { FastifyRequest } from "fastify";
import type { Caller } from "../../runtime/caller.ts";
import { idempotencyInProgress, idempotencyKeyReused } from "../errors.ts";
import type { Checked } from "../validation/validator.ts";

const HEADER = "idempotency-key";
const KEY = /^[\x20-\x7e]{1,255}$/;

/** Whether a request of this method may carry an idempotency key; with any other it is ignored. */
export function takesIdempotencyKey(method: string): boolean {
  return method === "POST" || method === "PATCH" || method === "DELETE";
}

/** The idempotency key of a request, where it has one that counts. */
export function readIdempotencyKey({ method, headers, raw }: FastifyRequest) {
  const { [HEADER]: key } = headers;
  if (key === undefined || !takesIdempotencyKey(method)) return NONE;
  // Node joins headers that repeat.
  const sent = raw.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === HEADER);
  if (sent.length > 1) return fault("must not repeat");
  if (typeof key !== "string" || !KEY.test(key))
    return fault("must be 1 to 255 printable ASCII characters");
  return { value: key } satisfies Checked<string>;
}

const NONE: Checked<string | undefined> = { value: undefined };

function fault(message: string): Checked<never> {
  return { faults: [{ field: `headers.${HEADER}`, message }] };
}

/** The idempotency keys of requests that this process is answering. */
export class KeysInFlight {
  readonly #requests = new Map<string, Uint8Array>();

  /**
   * Answers a request whose key, if it has one, nobody else may use until that is done.
   * @throws PublicError (idempotency_in_progress, idempotency_key_reused) where somebody does; whatever `answer` throws
   */
  async hold<T>({ orgId, idempotency }: Caller, answer: () => Promise<T>): Promise<T> {
    if (!idempotency) return answer();
    const id = `${orgId} ${idempotency.key}`;
    const first = this.#requests.get(id);
    if (first) {
      const isSame = Buffer.compare(first, idempotency.requestSha256) === 0;
      throw isSame ? idempotencyInProgress() : idempotencyKeyReused();
    }
    this.#requests.set(id, idempotency.requestSha256);
    try {
      return await answer();
    } finally {
      this.#requests.delete(id);
    }
  }
}
