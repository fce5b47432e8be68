import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../http.ts";
import { digestOf } from "./content.ts";

/** Calls of file routes as whoever holds the key; none of them throws. */
export interface FileCalls {
  put(volumeId: string, path: string, content: Buffer): Promise<Answer>;
  /** @returns with `digest` where the whole content came */
  get(volumeId: string, path: string): Promise<Answer & { digest?: string }>;
  remove(volumeId: string, path: string, idempotencyKey: string): Promise<Answer>;
}

const TIMEOUT_MS = 20_000;
const PIECE = 64 * 1024;
const PAUSE_MS = 15;

export function filesAs(url: string, key: string): FileCalls {
  const call = async (
    method: string,
    route: string,
    path: string,
    init: RequestInit & { duplex?: "half" } = {},
  ) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "x-msb-file-path": Buffer.from(path).toString("base64url"),
      ...init.headers,
    };
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return fetch(`${url}/v1/volumes/${route}`, { ...init, method, headers, signal });
  };
  return {
    put: (volumeId, path, content) => {
      const init = { body: slowly(content), duplex: "half" } as const;
      return answered(call("PUT", `${volumeId}/files/content`, path, init));
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
      const headers = { "idempotency-key": idempotencyKey };
      return answered(call("DELETE", `${volumeId}/files`, path, { headers }));
    },
  };
}

/** So that something may be killed in the middle of it. */
async function* pieces(content: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += PIECE) {
    await sleep(PAUSE_MS);
    yield content.subarray(at, at + PIECE);
  }
}

function slowly(content: Buffer): ReadableStream {
  return ReadableStream.from(pieces(content));
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
