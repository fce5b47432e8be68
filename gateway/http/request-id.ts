import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

const SANE = /^[\x21-\x7e]{1,128}$/;

/** The client's `X-Request-Id`, where it sent a sane one, else a new one. */
export function requestId({ headers }: Pick<IncomingMessage, "headers">): string {
  const sent = headers["x-request-id"];
  return typeof sent === "string" && SANE.test(sent) ? sent : randomUUID();
}
