export const ROLES = ["owner", "admin", "member", "viewer"] as const;
export type Role = (typeof ROLES)[number];

/** A person in an organization. */
export interface Member {
  /** UUID of the membership. */
  id: string;
  /** UUID of the person, the same in every organization. */
  userId: string;
  email: string;
  displayName: string | null;
  avatarUrl: string | null;
  role: Role;
  joinedAt: Date;
}
