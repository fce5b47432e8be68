/** An answer of the gateway, or why there is none. */
export interface Answer {
  /** 0: there is none. */
  status: number;
  code: string | undefined;
  body: Record<string, unknown>;
  /** It is an earlier one, given again. */
  replayed: boolean;
}

export interface Request {
  method: string;
  path: string;
  body?: object | undefined;
  idempotencyKey?: string | undefined;
}

export type Call = (request: Request) => Promise<Answer>;

const TIMEOUT_MS = 20_000;

/** Calls as whoever holds the key; never throws. */
export function callsAs(url: string, key: string): Call {
  return async ({ method, path, body, idempotencyKey }) => {
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
        },
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body && { body: JSON.stringify(body) }),
      });
      // Cut off in its middle it is no answer.
      const answer = (await response.json()) as Record<string, unknown>;
      const error = answer.error as { code: string } | undefined;
      const replayed = response.headers.get("idempotent-replayed") === "true";
      return { status: response.status, code: error?.code, body: answer, replayed };
    } catch (error) {
      const code = error instanceof Error ? error.name : "unknown";
      return { status: 0, code, body: {}, replayed: false };
    }
  };
}

/** Where the name is that a create wanted. */
export function holderOf({ body }: Answer): string | undefined {
  const error = body.error as { details?: { sandbox_id?: string } | null } | undefined;
  return error?.details?.sandbox_id;
}
