import { ServiceError } from "../runtime/errors.ts";
import { dig } from "./dig.ts";

// Connection exceptions, a server that only reads for now (as one that stands by for another does), too many
// connections, a row that stayed locked, a statement that took too long, and a server that shuts down or starts up.
const SQLSTATE = /^(?:08...|25006|53300|55P03|57014|57P0[123])$/;
const SYSTEM = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EPIPE", "ETIMEDOUT"]);
const KINDS = new Set([
  "DatabaseNotReachable",
  "ConnectionClosed",
  "SocketTimeout",
  "TooManyConnections",
]);
// What `pg` and its pool throw without a code.
const MESSAGES =
  /^(?:Connection terminated|Query read timeout|timeout exceeded when trying to connect|Cannot use a pool after calling end|Client has encountered a connection error)/;

/** The error as it is, or as SERVICE_UNAVAILABLE where the database was not there to answer. */
export function asUnavailable(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  const refused = new ServiceError("SERVICE_UNAVAILABLE", "the database does not answer");
  refused.cause = error;
  return refused;
}

function isUnavailable(error: unknown): boolean {
  const cause = dig(error, "meta", "driverAdapterError", "cause") ?? dig(error, "cause");
  const state = String(dig(cause, "originalCode") ?? "");
  const code = String(dig(error, "code") ?? "");
  return (
    SQLSTATE.test(state) ||
    SYSTEM.has(code) ||
    KINDS.has(String(dig(cause, "kind") ?? "")) ||
    (error instanceof Error && MESSAGES.test(error.message))
  );
}
