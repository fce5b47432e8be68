import type { Client } from "@connectrpc/connect";
import type { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { operation } from "../../http/operation.ts";
import { type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { pageMessage, publicPage } from "../pages.ts";
import { MemberPage, MemberQuery, Organization } from "./schema.ts";
import { publicMember, publicOrganization } from "./translate.ts";

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

const listMembers = operation({
  id: "listMembers",
  tag: "Organization",
  summary: "List members",
  description: "The people of the organization. Newest first, a page at a time.",
  query: MemberQuery,
  response: MemberPage,
  example: {
    data: [
      {
        id: "019a9f2d-2b7c-7e15-9d80-4c3b2a190817",
        user_id: "019a9f2d-2b70-7f44-b1e6-8a7b6c5d4e3f",
        email: "ada@example.org",
        display_name: "Ada",
        avatar_url: null,
        role: "owner",
        joined_at: "2026-11-21T08:14:09.511Z",
      },
    ],
    has_more: false,
    next_cursor: null,
  },
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
    route("GET", "/v1/members", listMembers, async ({ query, caller, signal }) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      const page = await organizations.listMembers(pageMessage(query), options);
      return publicPage(page.members.map(publicMember), page.nextPageToken);
    }),
  ];
}
