import Type, { type Static } from "typebox";
import { words } from "../../validation/schema.ts";

export const Organization = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    slug: Type.String(),
    role: words(["owner", "admin", "member", "viewer"], {
      description: "What the caller may do; a key acts as the owner.",
    }),
    mfa_required: Type.Boolean(),
    created_at: Type.String({ format: "date-time" }),
    updated_at: Type.String({ format: "date-time" }),
  },
  { title: "Organization" },
);
export type Organization = Static<typeof Organization>;
