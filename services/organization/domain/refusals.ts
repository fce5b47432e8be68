import { ServiceError } from "../../../runtime/errors.ts";

export function noOrganization(): ServiceError {
  return new ServiceError("ORG_NOT_FOUND", "org not found");
}

export function noKey(): ServiceError {
  return new ServiceError("KEY_NOT_FOUND", "no such key");
}
