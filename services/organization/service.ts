import type { ServiceImpl } from "@connectrpc/connect";
import type { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import type { OrganizationContext } from "./context.ts";
import { authenticateKey } from "./domain/authenticate-key.ts";
import { getOrganization } from "./domain/get-organization.ts";
import * as write from "./messages.ts";

/** Every RPC of organization.v1: read the message, call the verb, write the message. */
export function createOrganizationService(
  ctx: OrganizationContext,
): Partial<ServiceImpl<typeof OrganizationService>> {
  return {
    authenticateKey: async (request) =>
      write.keyHolderToMessage(await authenticateKey(ctx, request.keySha256)),

    getOrganization: async (_request, call) => {
      const organization = await getOrganization(ctx, requireCaller(call));
      return { organization: write.organizationToMessage(organization) };
    },
  };
}
