import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { type FieldFault, type Reason, ServiceError } from "../errors.ts";

/** `google.rpc.ErrorInfo.domain` of every error of ours. */
const ERROR_DOMAIN = "sandgate";
/** `google.rpc.ErrorInfo.reason` of an error that nobody classified. */
const INTERNAL_REASON = "INTERNAL";

/** The code that clients see which know codes alone. */
const CODES: Readonly<Record<Reason, Code>> = {
  INVALID_REQUEST: Code.InvalidArgument,
  INVALID_SANDBOX_CONFIG: Code.FailedPrecondition,
  INVALID_API_KEY: Code.Unauthenticated,
  ORG_SUSPENDED: Code.PermissionDenied,
  ORG_NOT_FOUND: Code.NotFound,
  SANDBOX_NOT_FOUND: Code.NotFound,
  NAME_ALREADY_EXISTS: Code.AlreadyExists,
  INVALID_STATE_TRANSITION: Code.FailedPrecondition,
  QUOTA_EXCEEDED: Code.ResourceExhausted,
  VOLUME_NOT_FOUND: Code.NotFound,
  VOLUME_ALREADY_EXISTS: Code.AlreadyExists,
  VOLUME_PROTECTED: Code.FailedPrecondition,
  VOLUME_IN_USE: Code.FailedPrecondition,
  VOLUME_FILE_NOT_FOUND: Code.NotFound,
  INVALID_VOLUME_PATH: Code.InvalidArgument,
  FILE_CONFLICT: Code.FailedPrecondition,
  EVENT_NOT_FOUND: Code.NotFound,
  MEMBER_NOT_FOUND: Code.NotFound,
  MEMBER_ALREADY_EXISTS: Code.AlreadyExists,
  KEY_NOT_FOUND: Code.NotFound,
  PLAN_NOT_FOUND: Code.NotFound,
  IDEMPOTENCY_KEY_REUSED: Code.FailedPrecondition,
  IDEMPOTENCY_KEY_UNKNOWN: Code.NotFound,
  RATE_LIMITED: Code.ResourceExhausted,
  ORCHESTRATOR_UNREACHABLE: Code.Unavailable,
  SERVICE_UNAVAILABLE: Code.Unavailable,
};

/** A refusal as it leaves a service: reason and metadata in an ErrorInfo, faults in a BadRequest. */
export function toConnectError(error: ServiceError): ConnectError {
  const { reason, metadata, faults } = error;
  return new ConnectError(error.message, CODES[reason], undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN, metadata: { ...metadata } } },
    ...(faults.length > 0 ? [badRequest(faults)] : []),
  ]);
}

/** What leaves in place of an error that nobody classified; the log has the cause under this request id. */
export function internalError(requestId: string): ConnectError {
  const metadata = { request_id: requestId };
  return new ConnectError("internal error", Code.Internal, undefined, [
    { desc: ErrorInfoSchema, value: { reason: INTERNAL_REASON, domain: ERROR_DOMAIN, metadata } },
  ]);
}

/** The refusal that a client's error carries, in process or decoded; undefined where it is no refusal of ours. */
export function fromConnectError(error: unknown): ServiceError | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
  if (info === undefined || !isReason(info.reason)) return undefined;
  const faults = error
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description }) => ({ field, message: description })),
    );
  return new ServiceError(info.reason, error.rawMessage, { metadata: info.metadata, faults });
}

function badRequest(faults: readonly FieldFault[]) {
  const fieldViolations = faults.map(({ field, message }) => ({ field, description: message }));
  return { desc: BadRequestSchema, value: { fieldViolations } };
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(CODES, text);
}
