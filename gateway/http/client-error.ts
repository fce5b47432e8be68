import type { Socket } from "node:net";
import { invalidRequest, type PublicError } from "../errors.ts";
import { JSON_TYPE } from "./body.ts";
import { requestId } from "./request-id.ts";

/** Answers bytes that are no HTTP request, for which no route is ever asked. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  socket.end(message(invalidRequest([faultOf(error)])));
}

function faultOf(error: NodeJS.ErrnoException) {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return { field: "headers", message: "are too large" };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { field: "request", message: "did not arrive in time" };
    default:
      return { field: "request", message: "is not valid HTTP" };
  }
}

function message(answer: PublicError): string {
  const body = JSON.stringify(answer.envelope());
  return [
    `HTTP/1.1 ${answer.status} Bad Request`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId({ headers: {} })}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
