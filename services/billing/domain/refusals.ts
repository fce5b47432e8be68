import { type FieldFault, ServiceError } from "../../../runtime/errors.ts";

export function invalidRequest(faults: readonly FieldFault[]): ServiceError {
  const first = faults[0];
  const message = `invalid request: ${first ? `${first.field}: ${first.message}` : "refused"}`;
  return new ServiceError("INVALID_REQUEST", message, { faults });
}

export function orgNotFound(): ServiceError {
  return new ServiceError("ORG_NOT_FOUND", "org not found");
}

export function planNotFound(name: string): ServiceError {
  return new ServiceError("PLAN_NOT_FOUND", `no plan ${name}`, { metadata: { plan: name } });
}
