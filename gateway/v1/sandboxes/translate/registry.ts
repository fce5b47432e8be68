import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type RegistryAuth, RegistryAuthSchema } from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import type { RegistryInput } from "../schema/registry.ts";

/** One way only: how an image is pulled is never shown. */
export function registryMessage(registry: RegistryInput): RegistryAuth {
  return create(RegistryAuthSchema, { mode: modeInit(registry) });
}

function modeInit(
  registry: RegistryInput,
): NonNullable<MessageInitShape<typeof RegistryAuthSchema>["mode"]> {
  switch (registry.mode) {
    case "auto":
    case "anonymous":
      return { case: registry.mode, value: {} };
    case "specific":
      return { case: "specific", value: { credentialId: registry.credential_id } };
    case "inline": {
      const { username, password } = registry;
      return { case: "inline", value: { username, password } };
    }
  }
}
