import type { Client } from "@connectrpc/connect";
import type { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { operation } from "../../http/operation.ts";
import { type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { Organization } from "./schema.ts";
import { publicOrganization } from "./translate.ts";

const getOrganization = operation({
  id: "getOrganization",
  tag: "Organization",
  summary: "Read the organization",
  description: "The organization whose key this is.",
  response: Organization,
  example: {
    id: "019a9f2d-11c4-7a0b-8e21-5d5b9a7c6e10",
    name: "default",
    slug: "default",
    role: "owner",
    mfa_required: false,
    created_at: "2026-11-21T08:14:02.004Z",
    updated_at: "2026-11-21T08:14:02.004Z",
  },
  errors: ["org_not_found"],
});

export interface OrganizationDeps {
  organizations: Client<typeof OrganizationService>;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

export function organizationRoutes({ organizations, rpcTimeoutMs }: OrganizationDeps): Route[] {
  return [
    route("GET", "/v1/me/org", getOrganization, async ({ caller, signal }) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      return publicOrganization((await organizations.getOrganization({}, options)).organization);
    }),
  ];
}
