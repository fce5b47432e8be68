import { Code, ConnectError } from "@connectrpc/connect";
import { CommanderError } from "commander";
import { type ServiceError, StartupError } from "../runtime/errors.ts";
import { fromConnectError } from "../runtime/rpc/errors.ts";

/** As `--json` prints it under `error`. */
export interface ErrorShape {
  /** Upper case; a service's reason, or one of the command line's own. */
  reason: string;
  message: string;
  /** What the refusal says beside its sentence; `errors` lists faults by field. */
  details: Record<string, unknown>;
}

/** What a call that failed means to an operator, where no service has refused it. */
const FAILURES: Partial<Record<Code, Omit<ErrorShape, "details">>> = {
  [Code.Unauthenticated]: {
    reason: "SERVICE_TOKEN_REFUSED",
    message:
      "the server takes neither this service token nor a certificate: set SERVICE_TOKEN, DATA_DIR to its folder, or TLS_CERT",
  },
  [Code.Unimplemented]: {
    reason: "NOT_SERVED",
    message:
      "that server does not answer this call: name the one that runs the role (--server, --billing-server)",
  },
  [Code.Unavailable]: {
    reason: "SERVICE_UNAVAILABLE",
    message:
      "the server cannot be reached: see that it runs, and that this is its RPC port (RPC_PORT)",
  },
  [Code.DeadlineExceeded]: {
    reason: "DEADLINE_EXCEEDED",
    message: "the server did not answer in time",
  },
};

/** An error for people and for programs. */
export function describeError(error: unknown): { text: string; json: ErrorShape } {
  const json = shapeOf(error);
  const faults = Array.isArray(json.details.errors) ? json.details.errors : [];
  const lines =
    faults.length > 1 ? faults.map(({ field, message }) => `  ${field}: ${message}`) : [];
  return { text: [`sandgate: ${json.message} (${json.reason})`, ...lines].join("\n"), json };
}

function shapeOf(error: unknown): ErrorShape {
  if (error instanceof CommanderError)
    return { reason: "USAGE", message: error.message.replace(/^error: /, ""), details: {} };
  if (error instanceof StartupError)
    return { reason: "SETUP", message: error.message, details: {} };
  const refusal = fromConnectError(error);
  if (refusal) return ofRefusal(refusal);
  if (error instanceof ConnectError) return ofFailure(error);
  return {
    reason: "INTERNAL",
    message: error instanceof Error ? error.message : String(error),
    details: {},
  };
}

function ofRefusal({ reason, message, metadata, faults }: ServiceError): ErrorShape {
  const errors = faults.length > 0 ? { errors: faults } : {};
  return { reason, message, details: { ...metadata, ...errors } };
}

function ofFailure(error: ConnectError): ErrorShape {
  const known = FAILURES[error.code] ?? { reason: "INTERNAL", message: error.rawMessage };
  return { ...known, details: {} };
}
