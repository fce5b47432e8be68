import type { FieldFault } from "../../../runtime/errors.ts";
import type { SandboxSpec } from "./spec.ts";

/**
 * What a spec refers to and this deployment does not have. It keeps no volumes and no stored
 * registry credentials yet, so every such reference is one. Pure.
 */
export function unknownReferences(spec: SandboxSpec): FieldFault[] {
  const faults = spec.mounts.flatMap((mount, i) =>
    mount.type === "named"
      ? [{ field: `mounts[${i}].name`, message: `volume '${mount.name}' does not exist` }]
      : [],
  );
  if (spec.registry.mode === "specific")
    faults.push({
      field: "registry.credential_id",
      message: `credential '${spec.registry.credentialId}' does not exist`,
    });
  return faults;
}
