import type { FieldFault } from "../../../runtime/errors.ts";
import { missingVolumes } from "./mounted-volumes.ts";
import type { SandboxSpec } from "./spec.ts";

/** The volumes that a spec mounts and that are not `there`, by name. Pure. */
export function unknownVolumes(spec: SandboxSpec, there: readonly string[]): FieldFault[] {
  return missingVolumes(spec, there, "does not exist");
}

/** No registry credentials are stored yet, so every reference to one leads nowhere. Pure. */
export function unknownCredentials({ registry }: SandboxSpec): FieldFault[] {
  if (registry.mode !== "specific") return [];
  const message = `credential '${registry.credentialId}' does not exist`;
  return [{ field: "registry.credential_id", message }];
}
