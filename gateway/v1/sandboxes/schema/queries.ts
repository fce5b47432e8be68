import Type, { type Static } from "typebox";
import { asRecord } from "../../../validation/rule.ts";
import { mapOf, text, words } from "../../../validation/schema.ts";
import { pageQuery } from "../../pages.ts";
import { filterFaults } from "./keys.ts";
import { SandboxStatus } from "./sandbox.ts";

const wait = {
  wait_for: Type.Optional(
    words(["running"], {
      description:
        "Hold the answer until the sandbox is running, failed or stopped, or the budget is spent.",
    }),
  ),
  wait_timeout: Type.Optional(
    Type.Integer({
      description: "The budget of `wait_for` in seconds; more than 300 counts as 300.",
      format: "int64",
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 60,
    }),
  ),
};

export const StartQuery = Type.Object({ ...wait }, { rule: budgetFault });

export const CreateQuery = Type.Object(
  {
    start: Type.Optional(Type.Boolean({ description: "Also start it.", default: false })),
    ...wait,
  },
  { rule: createWaitFault },
);

export const ListQuery = Type.Object({
  ...pageQuery,
  labels: Type.Optional(
    mapOf(text(), { description: "Labels that must all match.", rule: filterFaults }),
  ),
  status: Type.Optional(Type.Array(SandboxStatus, { description: "Any of these; may repeat." })),
});
export type ListQuery = Static<typeof ListQuery>;

const LOG_SOURCES = ["stdout", "stderr", "output", "system", "all"] as const;

export const LogsQuery = Type.Object({
  sources: Type.Optional(
    Type.String({
      description:
        "Which entries, with commas between: `stdout`, `stderr`, `output` (a terminal's merged stream), `system` (what happened to the run), `all`.",
      default: "stdout,stderr,output",
      rule: sourcesFault,
    }),
  ),
});

export const LogsHeaders = Type.Object({
  "Last-Event-ID": Type.Optional(
    Type.String({
      description:
        "The `id` of the last event seen: the stream goes on behind it. One of an earlier run begins at the beginning.",
    }),
  ),
});

export const SandboxIdParams = Type.Object({
  sandbox_id: Type.String({
    format: "uuid",
    pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    hint: "must be a UUID",
  }),
});

export const SandboxNameParams = Type.Object({
  name: Type.String({ description: "Percent-encoded UTF-8." }),
});

function sourcesFault(value: unknown) {
  if (typeof value !== "string") return undefined;
  const known = (name: string) => LOG_SOURCES.some((source) => source === name);
  return value.split(",").every(known)
    ? undefined
    : `must be of ${LOG_SOURCES.join(", ")}, with commas between`;
}

function budgetFault(value: unknown) {
  const { wait_for, wait_timeout } = asRecord(value) ?? {};
  if (wait_timeout === undefined || wait_for !== undefined) return undefined;
  return [{ at: ["wait_timeout"], message: "needs wait_for" }];
}

function createWaitFault(value: unknown) {
  const { start, wait_for } = asRecord(value) ?? {};
  if (wait_for === undefined || start === true) return budgetFault(value);
  return [{ at: ["wait_for"], message: "needs start=true" }];
}
