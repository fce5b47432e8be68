/** Why a request was refused, as it travels between services. The public codes are the gateway's own. */
export type Reason =
  | "INVALID_REQUEST"
  | "INVALID_SANDBOX_CONFIG"
  | "INVALID_API_KEY"
  | "ORG_SUSPENDED"
  | "ORG_NOT_FOUND"
  | "SANDBOX_NOT_FOUND"
  | "NAME_ALREADY_EXISTS"
  | "INVALID_STATE_TRANSITION"
  | "QUOTA_EXCEEDED"
  | "VOLUME_NOT_FOUND"
  | "VOLUME_ALREADY_EXISTS"
  | "VOLUME_PROTECTED"
  | "VOLUME_IN_USE"
  | "VOLUME_FILE_NOT_FOUND"
  | "INVALID_VOLUME_PATH"
  | "FILE_CONFLICT"
  | "EVENT_NOT_FOUND"
  | "MEMBER_NOT_FOUND"
  | "MEMBER_ALREADY_EXISTS"
  | "KEY_NOT_FOUND"
  | "PLAN_NOT_FOUND"
  | "IDEMPOTENCY_KEY_REUSED"
  | "IDEMPOTENCY_KEY_UNKNOWN"
  | "RATE_LIMITED"
  | "ORCHESTRATOR_UNREACHABLE"
  | "SERVICE_UNAVAILABLE";

/** One fault of a request: `field` is a path such as `spec.mounts[0].guest`. */
export interface FieldFault {
  field: string;
  message: string;
}

/**
 * A refusal that a domain verb throws. Each border translates it once: the service edge into a
 * Connect error, the gateway into the public envelope. Anything else that is thrown is internal.
 */
export class ServiceError extends Error {
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  readonly faults: readonly FieldFault[];

  constructor(
    reason: Reason,
    message: string,
    details: { metadata?: Record<string, string>; faults?: readonly FieldFault[] } = {},
  ) {
    super(message);
    this.name = "ServiceError";
    this.reason = reason;
    this.metadata = details.metadata ?? {};
    this.faults = details.faults ?? [];
  }
}

/** What does not fit, by field; the first one is the sentence. */
export function invalidRequest(faults: readonly FieldFault[]): ServiceError {
  const [first] = faults;
  const text = first?.field ? `${first.field}: ${first.message}` : (first?.message ?? "refused");
  return new ServiceError("INVALID_REQUEST", `invalid request: ${text}`, { faults });
}

/** A sentence for the operator: printed as it is, without a stack, before the program exits with 1. */
export class StartupError extends Error {
  override name = "StartupError";
}
