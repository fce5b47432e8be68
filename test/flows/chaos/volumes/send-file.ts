import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sending } from "./choices.ts";

const TIMEOUT_MS = 20_000;
const PIECE = 64 * 1024;
const PAUSE_MS = 15;

/** A file on its way, and the request that it goes with. */
export interface Upload {
  url: string;
  headers: Record<string, string>;
  content: Buffer;
  sending: Pick<Sending, "declared" | "breaksAt">;
}

/**
 * Sends a file slowly, so that something may be killed in the middle of it, or hangs up in its middle.
 * @throws Error where there is no answer
 */
export async function sendFile({ url, headers, content, sending }: Upload): Promise<Response> {
  const { declared, breaksAt } = sending;
  const length = declared ? { "content-length": String(content.length) } : {};
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const upload = request(url, { method: "PUT", headers: { ...headers, ...length }, signal });
  // Also early, and whatever becomes of the rest.
  const answered = once(upload, "response", { signal }) as Promise<[IncomingMessage]>;
  answered.catch(() => undefined);
  upload.flushHeaders();
  const sent = content.subarray(0, breaksAt ?? content.length);
  for (let at = 0; at < sent.length && !upload.destroyed; at += PIECE) {
    await sleep(PAUSE_MS);
    upload.write(sent.subarray(at, at + PIECE));
  }
  if (breaksAt === null) upload.end();
  else {
    // What was written is to arrive.
    await sleep(PAUSE_MS);
    upload.destroy(new Error("hung up"));
  }
  const [response] = await answered;
  const { statusCode: status = 0, headers: said } = response;
  const replayed = String(said["idempotent-replayed"] ?? "");
  return Response.json(await json(response), {
    status,
    headers: { "idempotent-replayed": replayed },
  });
}
