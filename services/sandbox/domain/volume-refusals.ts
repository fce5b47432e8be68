import { invalidRequest, ServiceError } from "../../../runtime/errors.ts";
import type { Standing } from "./quotas.ts";

/** A refusal names no more sandboxes than these: it has to fit into headers. */
export const MOST_NAMED = 20;

export function volumeNotFound(): ServiceError {
  return new ServiceError("VOLUME_NOT_FOUND", "no such volume");
}

export function volumeNameTaken(): ServiceError {
  return new ServiceError("VOLUME_ALREADY_EXISTS", "'name' already exists");
}

/** The host volume is the organization's for good, and holds what the organization may. */
export function volumeProtected(from: "deleted" | "capped"): ServiceError {
  return new ServiceError("VOLUME_PROTECTED", `the host volume cannot be ${from}`);
}

/** @param names of all sandboxes that hold it, or one more than are named */
export function volumeInUse(names: readonly string[]): ServiceError {
  const sandboxes = names.slice(0, MOST_NAMED).join(", ");
  const more = names.length > MOST_NAMED ? " and others" : "";
  return new ServiceError("VOLUME_IN_USE", `mounted by ${sandboxes}${more}`, {
    metadata: { sandboxes },
  });
}

/** A capacity that is more than the organization may store at all; undefined: it is not. */
export function aboveLimit(
  { limits }: Pick<Standing, "limits">,
  gib: number | null,
  field: string,
): ServiceError | undefined {
  const most = limits.max_total_storage_gib ?? null;
  if (gib === null || most === null || gib <= most) return undefined;
  const message = `is more than the ${most} GiB that the organization may store`;
  return invalidRequest([{ field, message }]);
}
