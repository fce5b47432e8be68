import type { Organization } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { toTime } from "../values.ts";
import type { Organization as PublicOrganization } from "./schema.ts";

/** @throws Error on a message without what every organization has */
export function publicOrganization(organization: Organization | undefined): PublicOrganization {
  if (!organization) throw new Error("the answer holds no organization");
  return {
    id: organization.id,
    name: organization.name,
    slug: organization.slug,
    role: "owner",
    mfa_required: organization.mfaRequired,
    created_at: toTime(organization.createdAt),
    updated_at: toTime(organization.updatedAt),
  };
}
