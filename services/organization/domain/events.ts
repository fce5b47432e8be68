import type { Caller } from "../../../runtime/caller.ts";
import { invalidRequest, ServiceError } from "../../../runtime/errors.ts";
import { type Page, type PageRequest, page } from "../../../runtime/pages.ts";
import type { OrganizationContext } from "../context.ts";
import type { AuditEvent } from "./event.ts";

export interface EventFilter {
  /** null: every type. */
  eventType: string | null;
  /** Microseconds since 1970, inclusive; null: from the first. */
  sinceUs: bigint | null;
  /** Likewise; null: to the last. */
  untilUs: bigint | null;
}

/**
 * Newest first.
 * @throws ServiceError (INVALID_REQUEST) where `since` is after `until`, or for a cursor of another list
 */
export async function listEvents(
  ctx: OrganizationContext,
  { orgId }: Caller,
  { eventType, sinceUs, untilUs, ...request }: EventFilter & PageRequest,
): Promise<Page<AuditEvent>> {
  if (sinceUs !== null && untilUs !== null && sinceUs > untilUs)
    throw invalidRequest([{ field: "since", message: "is after `until`" }]);
  const filters = [eventType, sinceUs, untilUs].map((filter) => filter?.toString() ?? null);
  return page(ctx.sign, { list: "events", orgId, filters }, request, (limit, after) =>
    ctx.store.listEvents({ orgId, eventType, sinceUs, untilUs, limit, after }),
  );
}

/** @throws ServiceError (EVENT_NOT_FOUND) */
export async function getEvent(
  ctx: OrganizationContext,
  { orgId }: Caller,
  id: string,
): Promise<AuditEvent> {
  const event = await ctx.store.findEvent(orgId, id);
  if (!event) throw new ServiceError("EVENT_NOT_FOUND", "no such event");
  return event;
}
