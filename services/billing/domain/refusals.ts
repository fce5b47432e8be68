import { ServiceError } from "../../../runtime/errors.ts";

export function orgNotFound(): ServiceError {
  return new ServiceError("ORG_NOT_FOUND", "org not found");
}

export function planNotFound(name: string): ServiceError {
  return new ServiceError("PLAN_NOT_FOUND", `no plan ${name}`, { metadata: { plan: name } });
}
