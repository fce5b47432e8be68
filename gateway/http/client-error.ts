import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { FieldFault } from "../../runtime/errors.ts";
import { invalidRequest, type PublicError } from "../errors.ts";
import { JSON_TYPE } from "./body.ts";
import { requestId } from "./request-id.ts";

/** How long a client may take to read an answer on a connection that is given up. */
const LINGER_MS = 2_000;

/** Answers bytes that are no HTTP request, for which no route is ever asked. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  // Who failed to agree on TLS could not read it.
  const readable = socket.writable && (!(socket instanceof TLSSocket) || socket.getProtocol());
  if (error.code === "ECONNRESET" || !readable || isAnswering(socket)) return void socket.destroy();
  giveUp(socket, faultOf(error));
}

/** An answer has begun, and what came behind its request would be written into it. Node itself looks at it so. */
function isAnswering(socket: Socket & { _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent === true;
}

/** Answers a request of which not all has come. */
export function answerTooLate(socket: Socket): void {
  giveUp(socket, TOO_LATE);
}

// A client that goes on sending would keep a connection that is closed by this side alone.
function giveUp(socket: Socket, fault: FieldFault): void {
  socket.end(message(invalidRequest([fault])));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

const TOO_LATE = { field: "request", message: "did not arrive in time" };

function faultOf(error: NodeJS.ErrnoException): FieldFault {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return { field: "headers", message: "are too large" };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return TOO_LATE;
    default:
      return { field: "request", message: "is not valid HTTP" };
  }
}

function message(answer: PublicError): string {
  const body = answer.text;
  return [
    `HTTP/1.1 ${answer.status} Bad Request`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId({ headers: {} })}`,
    "x-content-type-options: nosniff",
    "cache-control: no-store",
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
