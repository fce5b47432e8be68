import type { Client } from "@connectrpc/connect";
import type { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { operation } from "../../http/operation.ts";
import { type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { publicPage } from "../pages.ts";
import { Event, EventIdParams, EventPage, EventQuery } from "./schema.ts";
import { listEventsMessage, publicEvent } from "./translate.ts";

const tag = "Audit";

const exampleEvent: Event = {
  id: "019a9f2e-7a11-7d02-8c4e-6b1f0e2d9a37",
  org_id: "019a9f2d-11c4-7a0b-8e21-5d5b9a7c6e10",
  category: "sandbox",
  event_type: "sandbox_created",
  actor: { kind: "api_key", api_key_id: "019a9f2d-1f40-7b6a-a3c5-0f9e8d7c6b5a", name: "ci" },
  payload: { sandbox_id: "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44", name: "build-42" },
  timestamp: "2026-11-21T08:15:30.120417Z",
};

const listEvents = operation({
  id: "listEvents",
  tag,
  summary: "List audit events",
  description: "Every change of state, whoever made it. Newest first, a page at a time.",
  query: EventQuery,
  response: EventPage,
  example: { data: [exampleEvent], has_more: false, next_cursor: null },
});

const getEvent = operation({
  id: "getEvent",
  tag,
  summary: "Read an audit event",
  description: "One line of the audit log.",
  params: EventIdParams,
  response: Event,
  example: exampleEvent,
  errors: ["event_not_found"],
});

export interface EventDeps {
  organizations: Client<typeof OrganizationService>;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

export function eventRoutes({ organizations, rpcTimeoutMs }: EventDeps): Route[] {
  return [
    route("GET", "/v1/events", listEvents, async ({ query, caller, signal }) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      const page = await organizations.listEvents(listEventsMessage(query), options);
      return publicPage(page.events.map(publicEvent), page.nextPageToken);
    }),
    route("GET", "/v1/events/{event_id}", getEvent, async ({ params, caller, signal }) => {
      const message = { eventId: params.event_id.toLowerCase() };
      const options = callFor(caller, rpcTimeoutMs, signal);
      return publicEvent((await organizations.getEvent(message, options)).event);
    }),
  ];
}
