/** An answer of the gateway, or why there is none. */
export type Answer =
  | { status: number; code: string | undefined; body: Record<string, unknown> }
  | { status: 0; code: string; body: Record<string, unknown> };

export type Call = (
  method: string,
  path: string,
  body?: object,
  timeoutMs?: number,
) => Promise<Answer>;

const TIMEOUT_MS = 20_000;

/** Calls as whoever holds the key; never throws. */
export function callsAs(url: string, key: string): Call {
  return async (method, path, body, timeoutMs = TIMEOUT_MS) => {
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        signal: AbortSignal.timeout(timeoutMs),
        ...(body && { body: JSON.stringify(body) }),
      });
      // Cut off in its middle it is no answer.
      const answer = (await response.json()) as Record<string, unknown>;
      const error = answer.error as { code: string } | undefined;
      return { status: response.status, code: error?.code, body: answer };
    } catch (error) {
      return { status: 0, code: error instanceof Error ? error.name : "unknown", body: {} };
    }
  };
}

/** Where the name is that a create wanted. */
export function holderOf({ body }: Answer): string | undefined {
  const error = body.error as { details?: { sandbox_id?: string } | null } | undefined;
  return error?.details?.sandbox_id;
}
