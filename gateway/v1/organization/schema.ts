import Type, { type Static } from "typebox";
import { nullable, words } from "../../validation/schema.ts";
import { pageOf, pageQuery } from "../pages.ts";

export const ROLES = ["owner", "admin", "member", "viewer"] as const;

export const Organization = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    slug: Type.String(),
    role: words(ROLES, { description: "What the caller may do; a key acts as the owner." }),
    mfa_required: Type.Boolean(),
    created_at: Type.String({ format: "date-time" }),
    updated_at: Type.String({ format: "date-time" }),
  },
  { title: "Organization" },
);
export type Organization = Static<typeof Organization>;

export const Member = Type.Object(
  {
    id: Type.String({ format: "uuid", description: "Of the membership." }),
    user_id: Type.String({
      format: "uuid",
      description: "Of the person, the same in every organization.",
    }),
    email: Type.String(),
    display_name: nullable(Type.String()),
    avatar_url: nullable(Type.String()),
    role: words(ROLES),
    joined_at: Type.String({ format: "date-time" }),
  },
  { title: "Member", description: "A person in the organization." },
);
export type Member = Static<typeof Member>;

export const MemberPage = pageOf(Member, "MemberPage");

export const MemberQuery = Type.Object(pageQuery);
