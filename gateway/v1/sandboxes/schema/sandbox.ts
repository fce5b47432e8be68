import Type, { type Static } from "typebox";
import { nullable, words } from "../../../validation/schema.ts";
import { pageOf } from "../../pages.ts";
import { SandboxSpec } from "./spec.ts";

export const STATUSES = [
  "created",
  "starting",
  "running",
  "stopping",
  "stopped",
  "failed",
] as const;
const STATUS_REASONS = ["scheduling", "insufficient_capacity"] as const;

export const SandboxStatus = words(STATUSES, {
  title: "SandboxStatus",
  description: "Where a sandbox is in its life.",
});

const uuid = () => Type.String({ format: "uuid" });
const time = (description: string) => Type.String({ format: "date-time", description });

export const Sandbox = Type.Object(
  {
    id: uuid(),
    org_id: uuid(),
    name: Type.String({ description: "Unique in the organization." }),
    slug: Type.String({ description: "Unique everywhere." }),
    status: SandboxStatus,
    status_reason: nullable(words(STATUS_REASONS), {
      description: "Why it does not run yet; null unless `starting`.",
    }),
    ephemeral: Type.Boolean({ description: "Removed when it has stopped or failed." }),
    created_at: time("When it was made."),
    started_at: nullable(time("When the machine of the latest run was up.")),
    stopped_at: nullable(time("When the latest run ended; null while it is open.")),
    last_failure_message: nullable(Type.String(), {
      description: "Why the latest run failed; a start clears it.",
    }),
    spec: SandboxSpec,
  },
  { title: "Sandbox" },
);
export type Sandbox = Static<typeof Sandbox>;

export const SandboxPage = pageOf(Sandbox, "SandboxPage");
export type SandboxPage = Static<typeof SandboxPage>;

export const Message = Type.Object({ message: Type.String() }, { title: "Message" });
