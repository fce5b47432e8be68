import Type, { type TObject } from "typebox";
import { operation } from "../../http/operation.ts";
import { pageText } from "../pages.ts";
import {
  exampleCreated,
  exampleLogs,
  exampleRequest,
  exampleSandbox,
  exampleStarting,
  exampleStopping,
} from "./examples.ts";
import { CreateSandboxRequest, UpdateSandboxRequest } from "./schema/create.ts";
import {
  CreateQuery,
  ListQuery,
  LogsHeaders,
  LogsQuery,
  SandboxIdParams,
  SandboxNameParams,
  StartQuery,
} from "./schema/queries.ts";
import { Message, Sandbox, SandboxPage } from "./schema/sandbox.ts";
import { sandboxText } from "./translate/sandbox.ts";

const CREATE_LIMIT = 32 * 1024 * 1024;

const tag = "Sandboxes";
const noBody = {
  schema: Type.Object({}, { title: "Nothing", description: "No field is known here." }),
  optional: true,
  example: {},
};

export const createSandbox = operation({
  id: "createSandbox",
  tag,
  summary: "Create a sandbox",
  description:
    "Makes a sandbox, and starts it with `start=true`. A start that was admitted survives any crash.",
  query: CreateQuery,
  body: { schema: CreateSandboxRequest, limit: CREATE_LIMIT, example: exampleRequest },
  response: Sandbox,
  text: sandboxText,
  example: exampleCreated,
  errors: [
    "invalid_sandbox_config",
    "quota_exceeded",
    // Of one that is destroyed while it is waited for.
    "sandbox_not_found",
    "name_already_exists",
    "rate_limited",
    "orchestrator_unreachable",
  ],
});

export const listSandboxes = operation({
  id: "listSandboxes",
  tag,
  summary: "List sandboxes",
  description: "Newest first, a page at a time.",
  query: ListQuery,
  response: SandboxPage,
  text: pageText(sandboxText),
  example: { data: [exampleSandbox], has_more: false, next_cursor: null },
});

export const updateSandbox = operation({
  id: "updateSandbox",
  tag,
  summary: "Rename a sandbox",
  description: "Allowed in every state; a field that is null or absent is left unchanged.",
  params: SandboxIdParams,
  body: { schema: UpdateSandboxRequest, example: { name: "build-43" } },
  response: Sandbox,
  text: sandboxText,
  example: { ...exampleSandbox, name: "build-43" },
  errors: ["sandbox_not_found", "name_already_exists"],
});

export const readLogs = operation({
  id: "readSandboxLogs",
  tag,
  summary: "Follow a sandbox's output",
  description: `Server-sent events of the latest run, from its first kept byte on: \`log\`, whose data is
\`{"source", "ts", "text"}\` in JSON, then \`end\` when the run has ended, or at once where there was none. The text of a
line has its line break; a long line comes in several. A stream that breaks off without \`end\` is resumed by
\`Last-Event-ID\`, without loss or repeat while the engine keeps the output. A comment comes every 15 seconds.`,
  params: SandboxIdParams,
  query: LogsQuery,
  headers: LogsHeaders,
  media: "text/event-stream",
  response: Type.String({ description: "Events, as they happen." }),
  example: exampleLogs,
  errors: ["sandbox_not_found"],
});

/** The operations that take a sandbox by id as well as by name. */
function byKey<P extends TObject>(params: P, suffix: string, how: string) {
  return {
    get: operation({
      id: `getSandbox${suffix}`,
      tag,
      summary: `Read a sandbox${how}`,
      description: "The sandbox as it is now.",
      params,
      response: Sandbox,
      text: sandboxText,
      example: exampleSandbox,
      errors: ["sandbox_not_found"],
    }),
    destroy: operation({
      id: `destroySandbox${suffix}`,
      tag,
      summary: `Destroy a sandbox${how}`,
      description:
        "Once this answers the sandbox is gone and its name and slug are free; its compute and disk go away behind it.",
      params,
      response: Message,
      example: { message: "sandbox destroyed" },
      errors: ["sandbox_not_found", "orchestrator_unreachable"],
    }),
    start: operation({
      id: `startSandbox${suffix}`,
      tag,
      summary: `Start a sandbox${how}`,
      description: "From `created`, `stopped` or `failed`.",
      params,
      query: StartQuery,
      body: noBody,
      response: Sandbox,
      text: sandboxText,
      example: exampleStarting,
      errors: [
        "invalid_sandbox_config",
        "quota_exceeded",
        "sandbox_not_found",
        "invalid_state_transition",
        "rate_limited",
        "orchestrator_unreachable",
      ],
    }),
    stop: operation({
      id: `stopSandbox${suffix}`,
      tag,
      summary: `Stop a sandbox${how}`,
      description: "From `starting` or `running`; what does not end in its grace is killed.",
      params,
      body: noBody,
      response: Sandbox,
      text: sandboxText,
      example: exampleStopping,
      errors: ["sandbox_not_found", "invalid_state_transition", "orchestrator_unreachable"],
    }),
  };
}

export const byId = byKey(SandboxIdParams, "", "");
export const byName = byKey(SandboxNameParams, "ByName", " by name");
