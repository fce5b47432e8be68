import { ServiceError } from "../../../runtime/errors.ts";

/** One field does not fit. */
export function invalidField(field: string, message: string): ServiceError {
  return new ServiceError("INVALID_REQUEST", `invalid request: ${field}: ${message}`, {
    faults: [{ field, message }],
  });
}

export function noOrganization(): ServiceError {
  return new ServiceError("ORG_NOT_FOUND", "org not found");
}

export function noKey(): ServiceError {
  return new ServiceError("KEY_NOT_FOUND", "no such key");
}
