import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Static } from "typebox";
import type { SandboxKeySchema } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { sandboxNotFound } from "../../errors.ts";
import { SANDBOX_NAME } from "./schema/create.ts";
import type { SandboxIdParams, SandboxNameParams } from "./schema/queries.ts";

export type Key = MessageInitShape<typeof SandboxKeySchema>;

export function keyById({ sandbox_id }: Static<typeof SandboxIdParams>): Key {
  return { key: { case: "id", value: sandbox_id.toLowerCase() } };
}

/** @throws PublicError (sandbox_not_found) on a name that no sandbox can have */
export function keyByName({ name }: Static<typeof SandboxNameParams>): Key {
  if (!SANDBOX_NAME.test(name)) throw sandboxNotFound();
  return { key: { case: "name", value: name } };
}
