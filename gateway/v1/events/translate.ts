import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type {
  Event,
  ListEventsRequestSchema,
} from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { pageMessage } from "../pages.ts";
import { toExactTime, toInstant } from "../times.ts";
import type { EventActor, EventQuery, Event as PublicEvent } from "./schema.ts";

export function listEventsMessage(
  query: EventQuery,
): MessageInitShape<typeof ListEventsRequestSchema> {
  const { event_type, since, until } = query;
  return {
    ...pageMessage(query),
    eventType: event_type ?? "",
    since: since === undefined ? undefined : toInstant(since),
    until: until === undefined ? undefined : toInstant(until),
  };
}

/** @throws Error on a message without what every event has */
export function publicEvent(event: Event | undefined): PublicEvent {
  if (!event) throw new Error("the answer holds no event");
  return {
    id: event.id,
    org_id: event.orgId,
    category: event.category,
    event_type: event.eventType,
    actor: publicActor(event.actor ?? {}),
    payload: event.payload ?? {},
    timestamp: toExactTime(event.timestamp),
  };
}

/** Field by field: nothing that a service adds shows by itself. */
function publicActor(actor: JsonObject): EventActor {
  const { kind } = actor;
  const text = (name: string) => textOf(actor, name);
  switch (kind) {
    case "user":
      return {
        kind,
        user_id: text("user_id"),
        label: text("label"),
        redacted_email: text("redacted_email"),
      };
    case "api_key":
      return { kind, api_key_id: text("api_key_id"), name: text("name") };
    case "system":
      return { kind, code: text("code"), label: text("label") };
    case "ssh_key": {
      const label = actor.label == null ? null : text("label");
      return { kind, key_id: text("key_id"), fingerprint: text("fingerprint"), label };
    }
    default:
      throw new Error(`no public form of an actor of kind ${JSON.stringify(kind)}`);
  }
}

function textOf(actor: JsonObject, name: string): string {
  const { [name]: value } = actor;
  if (typeof value !== "string") throw new Error(`the actor of an event has no ${name}`);
  return value;
}
