import type { Answer } from "../http.ts";
import type { Sending } from "./choices.ts";
import { digestOf } from "./content.ts";
import { sendFile } from "./send-file.ts";

/** Calls of file routes as whoever holds the key; none of them throws. */
export interface FileCalls {
  put(
    volumeId: string,
    path: string,
    content: Buffer,
    sending: Pick<Sending, "declared" | "breaksAt">,
  ): Promise<Answer>;
  /** @returns with `digest` where the whole content came */
  get(volumeId: string, path: string): Promise<Answer & { digest?: string }>;
  remove(volumeId: string, path: string, idempotencyKey: string): Promise<Answer>;
}

const TIMEOUT_MS = 20_000;

export function filesAs(url: string, key: string): FileCalls {
  const to = (route: string) => `${url}/v1/volumes/${route}`;
  const headersOf = (path: string) => ({
    authorization: `Bearer ${key}`,
    "x-msb-file-path": Buffer.from(path).toString("base64url"),
  });
  const call = (method: string, route: string, path: string, more: Record<string, string> = {}) => {
    const headers = { ...headersOf(path), ...more };
    return fetch(to(route), { method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  };
  return {
    put: (volumeId, path, content, sending) => {
      const at = { url: to(`${volumeId}/files/content`), headers: headersOf(path) };
      return answered(sendFile({ ...at, content, sending }));
    },
    get: async (volumeId, path) => {
      try {
        const response = await call("GET", `${volumeId}/files/content`, path);
        if (!response.ok) return await toAnswer(response);
        const digest = digestOf(new Uint8Array(await response.arrayBuffer()));
        return { status: 200, code: undefined, body: {}, replayed: false, digest };
      } catch (error) {
        return lost(error);
      }
    },
    remove: (volumeId, path, idempotencyKey) => {
      const key = { "idempotency-key": idempotencyKey };
      return answered(call("DELETE", `${volumeId}/files`, path, key));
    },
  };
}

async function answered(response: Promise<Response>): Promise<Answer> {
  try {
    return await toAnswer(await response);
  } catch (error) {
    return lost(error);
  }
}

async function toAnswer(response: Response): Promise<Answer> {
  const body = (await response.json()) as Record<string, unknown>;
  const { code } = (body.error ?? {}) as { code?: string };
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, code, body, replayed };
}

function lost(error: unknown): Answer {
  const code = error instanceof Error ? error.name : "unknown";
  return { status: 0, code, body: {}, replayed: false };
}
