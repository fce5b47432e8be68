import { ServiceError } from "../runtime/errors.ts";
import { isAway } from "../runtime/postgres/away.ts";
import { dig } from "./dig.ts";

const KINDS = new Set([
  "DatabaseNotReachable",
  "ConnectionClosed",
  "SocketTimeout",
  "TooManyConnections",
]);

/** The error as it is, or as SERVICE_UNAVAILABLE where the database was not there to answer. */
export function asUnavailable(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  const refused = new ServiceError("SERVICE_UNAVAILABLE", "the database does not answer");
  refused.cause = error;
  return refused;
}

function isUnavailable(error: unknown): boolean {
  const cause = dig(error, "meta", "driverAdapterError", "cause") ?? dig(error, "cause");
  const codes = [dig(cause, "originalCode"), dig(error, "code")].map((code) => String(code ?? ""));
  const message = error instanceof Error ? error.message : "";
  return codes.some((code) => isAway(code, message)) || KINDS.has(String(dig(cause, "kind") ?? ""));
}
