import Type, { type Static } from "typebox";
import { tagged, text } from "../../../validation/schema.ts";

/** Which credentials pull the image. */
export const RegistryInput = tagged(
  "mode",
  [
    Type.Object(
      { mode: Type.Literal("auto") },
      { title: "AutoRegistry", description: "The operator's for the registry's host." },
    ),
    Type.Object({ mode: Type.Literal("anonymous") }, { title: "AnonymousRegistry" }),
    Type.Object(
      { mode: Type.Literal("specific"), credential_id: text({ minLength: 1 }) },
      { title: "SpecificRegistry", description: "A stored credential." },
    ),
    Type.Object(
      { mode: Type.Literal("inline"), username: text(), password: text({ format: "password" }) },
      { title: "InlineRegistry", description: "Sealed, and serves every pull of the sandbox." },
    ),
  ],
  { title: "RegistryInput" },
);
export type RegistryInput = Static<typeof RegistryInput>;
