import { Code, ConnectError } from "@connectrpc/connect";
import type { Reason, ServiceError } from "../runtime/errors.ts";
import { fromConnectError } from "../runtime/rpc/errors.ts";
import { configDetails, faultDetails, firstFault, pick } from "./error-details.ts";

/** Every public error code and its status. */
export const STATUS = {
  invalid_request: 400,
  invalid_sandbox_config: 400,
  invalid_volume_path: 400,
  invalid_api_key: 401,
  quota_exceeded: 403,
  org_suspended: 403,
  not_found: 404,
  org_not_found: 404,
  sandbox_not_found: 404,
  event_not_found: 404,
  volume_not_found: 404,
  volume_file_not_found: 404,
  method_not_allowed: 405,
  name_already_exists: 409,
  volume_already_exists: 409,
  volume_in_use: 409,
  invalid_state_transition: 409,
  idempotency_in_progress: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal: 500,
  orchestrator_unreachable: 502,
  service_unavailable: 503,
  deadline_exceeded: 504,
} as const;
export type ErrorCode = keyof typeof STATUS;

export type ErrorDetails = Record<string, unknown> | null;

/** An answer that is no success, as the client gets it. */
export class PublicError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly headers: Readonly<Record<string, string>>;
  /** The code's own, but for an `invalid_request` that state stands in the way of, and not form. */
  readonly status: number;
  #text: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = null,
    headers: Record<string, string> = HEADERS[code] ?? {},
    status: number = STATUS[code],
  ) {
    super(message);
    this.name = "PublicError";
    this.code = code;
    this.details = details;
    this.headers = headers;
    this.status = status;
  }

  /** The body of the answer. */
  envelope() {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }

  /** The same as JSON. */
  get text(): string {
    this.#text ??= JSON.stringify(this.envelope());
    return this.#text;
  }
}

/** Headers that an error always carries. */
const HEADERS: Partial<Record<ErrorCode, Record<string, string>>> = {
  invalid_api_key: { "www-authenticate": "Bearer" },
  rate_limited: { "retry-after": "1" },
  service_unavailable: { "retry-after": "1" },
};

/** The only table from what a service refuses to what the public reads. */
const REASONS: Readonly<Record<Reason, (error: ServiceError) => PublicError>> = {
  INVALID_REQUEST: (error) => invalidRequest(faultDetails(error).errors),
  INVALID_SANDBOX_CONFIG: (error) =>
    new PublicError(
      "invalid_sandbox_config",
      firstFault(faultDetails(error).errors) ?? error.message,
      configDetails(error),
    ),
  INVALID_API_KEY: () => unauthorized(),
  ORG_SUSPENDED: () => orgSuspended(),
  ORG_NOT_FOUND: () => new PublicError("org_not_found", "org not found"),
  SANDBOX_NOT_FOUND: () => sandboxNotFound(),
  NAME_ALREADY_EXISTS: ({ metadata }) =>
    new PublicError(
      "name_already_exists",
      `'${metadata.field ?? "name"}' already exists`,
      pick(metadata, ["field", "sandbox_id", "status"]),
    ),
  INVALID_STATE_TRANSITION: ({ metadata }) =>
    new PublicError(
      "invalid_state_transition",
      "invalid state transition",
      pick(metadata, ["from", "action"]),
    ),
  QUOTA_EXCEEDED: ({ metadata }) => quotaExceeded(metadata),
  VOLUME_NOT_FOUND: () => new PublicError("volume_not_found", "resource not found"),
  VOLUME_ALREADY_EXISTS: () => new PublicError("volume_already_exists", "'name' already exists"),
  VOLUME_PROTECTED: ({ message }) => conflict(message),
  VOLUME_IN_USE: ({ message, metadata }) =>
    new PublicError("volume_in_use", message, pick(metadata, ["sandboxes"])),
  VOLUME_FILE_NOT_FOUND: () => new PublicError("volume_file_not_found", "resource not found"),
  INVALID_VOLUME_PATH: ({ message }) => new PublicError("invalid_volume_path", message),
  FILE_CONFLICT: ({ message }) => conflict(message),
  EVENT_NOT_FOUND: () => new PublicError("event_not_found", "resource not found"),
  IDEMPOTENCY_KEY_REUSED: () => idempotencyKeyReused(),
  // No public route asks for what these refuse, so they would be a fault of this server.
  MEMBER_NOT_FOUND: () => internal(),
  MEMBER_ALREADY_EXISTS: () => internal(),
  KEY_NOT_FOUND: () => internal(),
  PLAN_NOT_FOUND: () => internal(),
  IDEMPOTENCY_KEY_UNKNOWN: () => internal(),
  RATE_LIMITED: () => rateLimited(),
  ORCHESTRATOR_UNREACHABLE: () =>
    new PublicError("orchestrator_unreachable", "orchestrator unreachable"),
  // What says that it may be shown names nothing of a host.
  SERVICE_UNAVAILABLE: ({ message, metadata }) =>
    metadata.public === "true" ? serviceUnavailable(message) : serviceUnavailable(),
};

/** What the public reads of anything that was thrown; what nobody classified says nothing of itself. */
export function toPublicError(error: unknown): PublicError {
  if (error instanceof PublicError) return error;
  const refusal = fromConnectError(error);
  if (refusal) return markReplayed(REASONS[refusal.reason](refusal), refusal);
  const code = error instanceof ConnectError ? error.code : undefined;
  if (code === Code.DeadlineExceeded) return deadlineExceeded();
  if (code === Code.Unavailable) return serviceUnavailable();
  return internal();
}

/** A refusal that an earlier request with the same idempotency key met says so. */
function markReplayed(answer: PublicError, { metadata }: ServiceError): PublicError {
  if (metadata.replayed !== "true") return answer;
  const { code, message, details, status } = answer;
  const headers = { ...answer.headers, "idempotent-replayed": "true" };
  return new PublicError(code, message, details, headers, status);
}

function internal(): PublicError {
  return new PublicError("internal", "internal error");
}

/** @param faults at least one, with public paths */
export function invalidRequest(faults: readonly { field: string; message: string }[]): PublicError {
  return new PublicError("invalid_request", `invalid request: ${firstFault(faults) ?? "refused"}`, {
    errors: faults,
  });
}

/** What is in the way is not the request's form. @param message says what it is */
export function conflict(message: string): PublicError {
  return new PublicError("invalid_request", message, null, {}, 409);
}

/** @param size of the whole, in bytes */
export function rangeRefused(size: bigint): PublicError {
  const faults = [{ field: "headers.range", message: "is beyond the end" }];
  const { code, message, details } = invalidRequest(faults);
  return new PublicError(code, message, details, { "content-range": `bytes */${size}` }, 416);
}

/** What is there is not what the client named by its `ETag`. */
export function contentChanged(): PublicError {
  const faults = [{ field: "headers.if-match", message: "is not the ETag of what is there" }];
  const { code, message, details } = invalidRequest(faults);
  return new PublicError(code, message, details, {}, 412);
}

// One for all: whoever sends wrong keys is not to cost a stack trace each.
const UNAUTHORIZED = new PublicError("invalid_api_key", "unauthorized");

export function unauthorized(): PublicError {
  return UNAUTHORIZED;
}

export function orgSuspended(): PublicError {
  return new PublicError("org_suspended", "organization suspended");
}

export function sandboxNotFound(): PublicError {
  return new PublicError("sandbox_not_found", "resource not found");
}

/** @param againInMs when there may be room */
export function rateLimited(againInMs = 1_000): PublicError {
  const seconds = Math.max(Math.ceil(againInMs / 1_000), 1);
  return new PublicError("rate_limited", "too many requests", null, {
    "retry-after": String(seconds),
  });
}

/** @param message for a person; says what is missing */
export function serviceUnavailable(message = "service unavailable", details: ErrorDetails = null) {
  return new PublicError("service_unavailable", message, details);
}

export function deadlineExceeded(): PublicError {
  return new PublicError("deadline_exceeded", "deadline exceeded");
}

export function idempotencyInProgress(): PublicError {
  return new PublicError(
    "idempotency_in_progress",
    "the first request with this idempotency key is still running",
  );
}

export function idempotencyKeyReused(): PublicError {
  return new PublicError(
    "idempotency_key_reused",
    "this idempotency key was used for another request",
  );
}

/**
 * Services send numbers as text; `used` and `requested` may be missing. The message tells them too, for official SDKs
 * show nothing else.
 */
export function quotaExceeded(metadata: Readonly<Record<string, string>>): PublicError {
  const { quota = "quota" } = metadata;
  const number = (name: string) => (metadata[name] === undefined ? null : Number(metadata[name]));
  const numbers = {
    limit: number("limit"),
    used: number("used"),
    requested: number("requested"),
  };
  const told = Object.entries(numbers).flatMap(([name, n]) => (n === null ? [] : `${name} ${n}`));
  const message = `quota exceeded: ${quota}${told.length > 0 ? ` (${told.join(", ")})` : ""}`;
  return new PublicError("quota_exceeded", message, { quota, ...numbers });
}
