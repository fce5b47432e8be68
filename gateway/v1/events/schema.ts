import Type, { type Static } from "typebox";
import { nullable, tagged, text } from "../../validation/schema.ts";
import { pageOf, pageQuery } from "../pages.ts";
import { boundsFault, boundsOf } from "../times.ts";

const uuid = () => Type.String({ format: "uuid" });

/** Who did it, as they were then. */
export const EventActor = tagged(
  "kind",
  [
    Type.Object(
      {
        kind: Type.Literal("user"),
        user_id: uuid(),
        label: Type.String(),
        redacted_email: Type.String(),
      },
      { title: "UserActor", description: "A person." },
    ),
    Type.Object(
      { kind: Type.Literal("api_key"), api_key_id: uuid(), name: Type.String() },
      { title: "ApiKeyActor", description: "Whoever holds the key." },
    ),
    Type.Object(
      { kind: Type.Literal("system"), code: Type.String(), label: Type.String() },
      { title: "SystemActor", description: "Sandgate itself, or its operator." },
    ),
    Type.Object(
      {
        kind: Type.Literal("ssh_key"),
        key_id: uuid(),
        fingerprint: Type.String(),
        label: nullable(Type.String()),
      },
      { title: "SshKeyActor", description: "Whoever holds the SSH key." },
    ),
  ],
  { title: "EventActor", description: "Who did it, as they were then." },
);
export type EventActor = Static<typeof EventActor>;

export const Event = Type.Object(
  {
    id: uuid(),
    org_id: uuid(),
    category: Type.String({ description: "Such as `sandbox`." }),
    event_type: Type.String({ description: "Such as `sandbox_created`." }),
    actor: EventActor,
    payload: Type.Object(
      {},
      { additionalProperties: true, description: "What it is about; it holds no secret." },
    ),
    timestamp: Type.String({ format: "date-time" }),
  },
  {
    title: "Event",
    description: "A line of the audit log: it never changes, and outlives what it is about.",
  },
);
export type Event = Static<typeof Event>;

export const EventPage = pageOf(Event, "EventPage");
export type EventPage = Static<typeof EventPage>;

export const EventQuery = Type.Object(
  {
    event_type: Type.Optional(
      text({ description: "Only of this type, such as `api_key_created`.", minLength: 1 }),
    ),
    ...boundsOf("Only what was done then or later.", "Only what was done then or earlier."),
    ...pageQuery,
  },
  { rule: boundsFault },
);
export type EventQuery = Static<typeof EventQuery>;

export const EventIdParams = Type.Object({
  event_id: Type.String({
    format: "uuid",
    pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    hint: "must be a UUID",
  }),
});
