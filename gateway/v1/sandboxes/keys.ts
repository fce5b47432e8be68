import type { Static } from "typebox";
import { sandboxNotFound } from "../../errors.ts";
import { SANDBOX_NAME } from "./schema/create.ts";
import type { SandboxIdParams, SandboxNameParams } from "./schema/queries.ts";

/** A sandbox of the caller's organization. */
export type Key = { case: "id" | "name"; value: string };

export function keyById({ sandbox_id }: Static<typeof SandboxIdParams>): Key {
  return { case: "id", value: sandbox_id.toLowerCase() };
}

/** @throws PublicError (sandbox_not_found) on a name that no sandbox can have */
export function keyByName({ name }: Static<typeof SandboxNameParams>): Key {
  if (!SANDBOX_NAME.test(name)) throw sandboxNotFound();
  return { case: "name", value: name };
}
