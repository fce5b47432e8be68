import type { ServiceImpl } from "@connectrpc/connect";
import type { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { actorOf, requireCaller } from "../../runtime/rpc/context.ts";
import type { OrganizationContext } from "./context.ts";
import { authenticateKey } from "./domain/authenticate-key.ts";
import * as change from "./domain/change-organization.ts";
import { getEvent, listEvents } from "./domain/events.ts";
import { getOrganization } from "./domain/get-organization.ts";
import { keepAnswer } from "./domain/keep-answer.ts";
import { createKey, revokeKey, rotateKey } from "./domain/keys.ts";
import { addMember, listMembers, removeMember } from "./domain/members.ts";
import type { Organization } from "./domain/organization.ts";
import * as read from "./messages.ts";

/** Every RPC of organization.v1: read the message, call the verb, write the message. */
export function createOrganizationService(
  ctx: OrganizationContext,
): ServiceImpl<typeof OrganizationService> {
  return {
    authenticateKey: async (request) =>
      read.keyHolderToMessage(await authenticateKey(ctx, request.keySha256)),

    async *watchKeys(_request, call) {
      for await (const news of ctx.keyWatch.watch(call.signal)) yield read.newsToMessage(news);
    },

    recordKeyUse: async (request) => {
      await ctx.store.recordKeyUse(read.usesFromMessage(request));
      return {};
    },

    getOrganization: async (_request, call) =>
      answer(await getOrganization(ctx, requireCaller(call))),

    listOrganizations: async () => {
      const organizations = await ctx.store.listOrganizations();
      return { organizations: organizations.map(read.organizationToMessage) };
    },

    createOrganization: async (request, call) =>
      answer(await change.createOrganization(ctx, actorOf(call), request)),

    suspendOrganization: async (_request, call) =>
      answer(await change.suspendOrganization(ctx, requireCaller(call))),

    resumeOrganization: async (_request, call) =>
      answer(await change.resumeOrganization(ctx, requireCaller(call))),

    listMembers: async (request, call) => {
      const page = await listMembers(ctx, requireCaller(call), read.pageFromMessage(request));
      return { members: page.rows.map(read.memberToMessage), ...read.nextToken(page.nextCursor) };
    },

    addMember: async (request, call) => {
      const { email, displayName = null } = request;
      const person = { email, displayName, role: read.roleFromMessage(request.role) };
      return { member: read.memberToMessage(await addMember(ctx, requireCaller(call), person)) };
    },

    removeMember: async (request, call) => {
      await removeMember(ctx, requireCaller(call), request.memberId);
      return {};
    },

    listKeys: async (_request, call) => {
      const keys = await ctx.store.listKeys(requireCaller(call).orgId);
      return { keys: keys.map(read.apiKeyToMessage) };
    },

    createKey: async (request, call) => {
      const input = { name: request.name, expiresAt: read.dateFromMessage(request.expiresAt) };
      const { key, secret } = await createKey(ctx, requireCaller(call), input);
      return { key: read.apiKeyToMessage(key), secret };
    },

    revokeKey: async (request, call) => {
      const key = await revokeKey(ctx, requireCaller(call), request.apiKeyId);
      return { key: read.apiKeyToMessage(key) };
    },

    rotateKey: async (request, call) => {
      const input = { id: request.apiKeyId, overlapSecs: request.overlapSecs };
      const { key, secret, replaced } = await rotateKey(ctx, requireCaller(call), input);
      return {
        key: read.apiKeyToMessage(key),
        secret,
        replaced: read.apiKeyToMessage(replaced),
      };
    },

    listEvents: async (request, call) => {
      const input = { ...read.eventFilterFromMessage(request), ...read.pageFromMessage(request) };
      const page = await listEvents(ctx, requireCaller(call), input);
      return { events: page.rows.map(read.eventToMessage), ...read.nextToken(page.nextCursor) };
    },

    getEvent: async (request, call) => ({
      event: read.eventToMessage(await getEvent(ctx, requireCaller(call), request.eventId)),
    }),

    keepAnswer: async (request, call) => {
      const input = { key: request.idempotencyKey, answer: request.answer };
      return { answer: await keepAnswer(ctx, requireCaller(call), input) };
    },
  };
}

function answer(organization: Organization) {
  return { organization: read.organizationToMessage(organization) };
}
