import Type from "typebox";
import {
  type ErrorCode,
  idempotencyInProgress,
  idempotencyKeyReused,
  PublicError,
  quotaExceeded,
  STATUS,
} from "../errors.ts";
import { takesIdempotencyKey } from "../http/idempotency.ts";
import type { Route } from "../http/route.ts";
import { nullable, words } from "../validation/schema.ts";

/** A route as the reference shows it. */
export type DocumentedRoute = Pick<Route, "method" | "path" | "operation">;

const CODES = Object.keys(STATUS) as ErrorCode[];

export const ErrorSchema = Type.Object(
  {
    error: Type.Object({
      code: words(CODES, { description: "Stable; what a program should look at." }),
      message: Type.String({ description: "For a person." }),
      details: nullable(Type.Object({}, { additionalProperties: true }), {
        description: "What a program may want to know more.",
      }),
    }),
  },
  { title: "Error", description: "The body of every answer that is no success." },
);

const missingImage = { field: "image.reference", message: "is required" };
const strict = { field: "network.strict", message: "is not supported by this deployment's engine" };

/** An example of each error. */
const EXAMPLES: Readonly<Record<ErrorCode, PublicError>> = {
  invalid_request: new PublicError(
    "invalid_request",
    "invalid request: image.reference: is required",
    { errors: [missingImage] },
  ),
  invalid_sandbox_config: new PublicError(
    "invalid_sandbox_config",
    "network.strict: is not supported by this deployment's engine",
    { field: strict.field, errors: [strict] },
  ),
  invalid_api_key: new PublicError("invalid_api_key", "unauthorized"),
  quota_exceeded: quotaExceeded({
    quota: "max_sandboxes",
    limit: "20",
    used: "20",
    requested: "1",
  }),
  org_suspended: new PublicError("org_suspended", "organization suspended"),
  not_found: new PublicError("not_found", "resource not found"),
  org_not_found: new PublicError("org_not_found", "org not found"),
  sandbox_not_found: new PublicError("sandbox_not_found", "resource not found"),
  event_not_found: new PublicError("event_not_found", "resource not found"),
  volume_not_found: new PublicError("volume_not_found", "resource not found"),
  volume_file_not_found: new PublicError("volume_file_not_found", "resource not found"),
  invalid_volume_path: new PublicError("invalid_volume_path", "'../x' leaves the volume"),
  volume_already_exists: new PublicError("volume_already_exists", "'name' already exists"),
  volume_in_use: new PublicError("volume_in_use", "mounted by trainer", { sandboxes: "trainer" }),
  method_not_allowed: new PublicError("method_not_allowed", "PUT is not allowed here"),
  name_already_exists: new PublicError("name_already_exists", "'name' already exists", {
    field: "name",
    sandbox_id: "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44",
    status: "running",
  }),
  invalid_state_transition: new PublicError(
    "invalid_state_transition",
    "invalid state transition",
    { from: "running", action: "start" },
  ),
  idempotency_in_progress: idempotencyInProgress(),
  idempotency_key_reused: idempotencyKeyReused(),
  payload_too_large: new PublicError("payload_too_large", "the body is too large"),
  unsupported_media_type: new PublicError(
    "unsupported_media_type",
    "the body must be application/json",
  ),
  rate_limited: new PublicError("rate_limited", "too many requests"),
  internal: new PublicError("internal", "internal error"),
  orchestrator_unreachable: new PublicError("orchestrator_unreachable", "orchestrator unreachable"),
  service_unavailable: new PublicError("service_unavailable", "service unavailable"),
  deadline_exceeded: new PublicError("deadline_exceeded", "deadline exceeded"),
};

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: "The request does not fit; every fault is named.",
  401: "No key, or one that is not good.",
  403: "The organization may not do this.",
  404: "There is no such thing, or it is somebody else's.",
  409: "In conflict with what is there.",
  412: "What is there is not what the client named.",
  413: "The body is too large.",
  415: "The body is no JSON by its type.",
  416: "There is nothing in that range.",
  422: "The idempotency key was used for another request.",
  429: "Too many requests of this key, waits held, or wrong keys from this address.",
  500: "A fault of this server.",
  502: "Nothing that could run a sandbox answers.",
  503: "Starting, draining, or something that is needed is down.",
  504: "An internal call ran out of time.",
};

// Where a header says more than the envelope.
const HEADERS: Readonly<Record<number, readonly string[]>> = {
  401: ["WWW-Authenticate"],
  416: ["Content-Range"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Headers of every answer to a key that is good, where there are limits. */
export const RATE_LIMITS = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"] as const;

// What a verb refuses is remembered with the idempotency key of the request.
const REPLAYABLE: readonly number[] = [403, 404, 409];

/** The answers of a route that are no successes, by status. */
export function errorResponses(route: DocumentedRoute): Record<string, object> {
  const byStatus = Map.groupBy(examplesOf(route), ({ status }) => status);
  return Object.fromEntries(
    [...byStatus].map(([status, examples]) => [
      status,
      response(examples, headersOf(route, status), status),
    ]),
  );
}

/** An example of an error, by its name among the components, and the status that it comes with. */
interface ErrorExample {
  name: string;
  status: number;
}

function examplesOf(route: DocumentedRoute): ErrorExample[] {
  const usual = codesOf(route).map((code) => ({ name: code as string, status: STATUS[code] }));
  const others = route.operation.refusals.map((refusal) => ({
    name: refusalName(refusal),
    status: refusal.status,
  }));
  return [...usual, ...others];
}

function refusalName({ code, status }: PublicError): string {
  return `${code}_${status}`;
}

function headersOf({ method, operation }: DocumentedRoute, status: number): string[] {
  const replayable = takesIdempotencyKey(method) && REPLAYABLE.includes(status);
  return [
    "X-Request-Id",
    ...(operation.body && !operation.body.media ? ["X-Ignored-Fields"] : []),
    ...(replayable ? ["Idempotent-Replayed"] : []),
    ...(HEADERS[status] ?? []),
    ...(operation.open ? [] : RATE_LIMITS),
  ];
}

/** What `components/examples` holds. */
export function errorExamples(routes: readonly DocumentedRoute[]): Record<string, object> {
  const codes = new Set(routes.flatMap(codesOf));
  const usual = [...codes].map((code) => [code, exampleOf(EXAMPLES[code])]);
  const refusals = routes.flatMap(({ operation }) => operation.refusals);
  const others = refusals.map((refusal) => [refusalName(refusal), exampleOf(refusal)]);
  return Object.fromEntries([...usual, ...others]);
}

function exampleOf(error: PublicError): object {
  return { summary: error.code, value: error.envelope() };
}

const IDEMPOTENCY_CODES = ["idempotency_in_progress", "idempotency_key_reused"] as const;

/** Every error that a route may end in. */
function codesOf({ method, operation }: DocumentedRoute): ErrorCode[] {
  const { body, errors, open } = operation;
  // What takes nothing answers so too: to headers that are too large, to what is no HTTP.
  if (open) return ["invalid_request", ...errors, "internal"];
  return [
    "invalid_request",
    "invalid_api_key",
    "org_suspended",
    "rate_limited",
    ...errors.filter((code) => code !== "rate_limited"),
    ...(takesIdempotencyKey(method) ? IDEMPOTENCY_CODES : []),
    ...(body && !body.media ? (["payload_too_large", "unsupported_media_type"] as const) : []),
    "internal",
    "service_unavailable",
    "deadline_exceeded",
  ];
}

function response(given: readonly ErrorExample[], headers: readonly string[], status: number) {
  const examples = given.map(({ name }) => [name, { $ref: `#/components/examples/${name}` }]);
  return {
    description: DESCRIPTIONS[status],
    headers: headerRefs(headers),
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/Error" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

export function headerRefs(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
