import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as pb from "../../proto/gen/organization/v1/organization_service_pb.ts";
import type { KeyHolder, Organization } from "./domain/organization.ts";

export function keyHolderToMessage(holder: KeyHolder): pb.AuthenticateKeyResponse {
  const { expiresAt, ...rest } = holder;
  return create(pb.AuthenticateKeyResponseSchema, {
    ...rest,
    ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }),
  });
}

export function organizationToMessage(organization: Organization): pb.Organization {
  const { id, name, slug, mfaRequired, createdAt, updatedAt } = organization;
  return create(pb.OrganizationSchema, {
    id,
    name,
    slug,
    mfaRequired,
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
  });
}
