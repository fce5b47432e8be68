import fc from "fast-check";
import { type OpenApi, type Operation, type Parameter, schemaOf } from "./document.ts";
import { type Kind, Ref } from "./ref.ts";
import { togetherInQuery } from "./rules.ts";
import { type Spoil, spoilOf } from "./spoils.ts";
import { Values } from "./values.ts";

/** A request to be: what it names is looked up when it is sent. */
export interface Case {
  operation: Operation;
  path: Record<string, unknown>;
  query: Record<string, unknown>;
  headers: Record<string, unknown>;
  /** A JSON value, bytes, or undefined. */
  body: unknown;
  /** In place of the query: one that an earlier page led to. */
  page: number | undefined;
  /** What is done to it to make it a bad one. */
  spoils: Spoil[];
}

/** Half of them fit in every part, the others are spoiled in one to three. */
export function casesOf(document: OpenApi, operations: readonly Operation[]): fc.Arbitrary<Case> {
  const values = new Values(document);
  return fc.oneof(
    ...operations.map((operation) => ({
      weight: weightOf(operation),
      arbitrary: caseOf(values, operation),
    })),
  );
}

/** A create has as many fields as all others together. */
function weightOf({ id }: Operation): number {
  return id === "createSandbox" ? 6 : id === "createVolume" || id === "writeFile" ? 3 : 1;
}

function caseOf(values: Values, operation: Operation): fc.Arbitrary<Case> {
  const { body } = operation;
  const paged = operation.parameters.some(({ name }) => name === "cursor");
  const spoil = spoilOf(operation);
  return fc.record({
    operation: fc.constant(operation),
    path: partOf(values, operation, "path"),
    query: partOf(values, operation, "query").map((query) => togetherInQuery(operation.id, query)),
    headers: fc
      .tuple(partOf(values, operation, "header"), commonHeaders)
      .map(([own, common]) => ({ ...own, ...common })),
    body: body ? optionally(body.required, bodyOf(values, body)) : fc.constant<unknown>(undefined),
    page: paged ? fc.option(fc.nat({ max: 1000 }), { nil: undefined }) : fc.constant(undefined),
    spoils: fc.oneof(fc.constant<Spoil[]>([]), fc.array(spoil, { minLength: 1, maxLength: 3 })),
  });
}

function bodyOf(values: Values, { media, schema }: NonNullable<Operation["body"]>) {
  if (media === "application/json") return values.of(schema, "body");
  return fc.oneof(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 4_096 }));
}

function partOf(values: Values, { parameters }: Operation, part: Parameter["in"]) {
  const own = parameters.filter((parameter) => parameter.in === part);
  const fields = own
    .filter(({ name }) => name !== "Idempotency-Key")
    .map((parameter) => [
      parameter.name,
      optionally(part === "path" || parameter.required === true, parameterValue(values, parameter)),
    ]);
  return fc.record<Record<string, unknown>>(Object.fromEntries(fields));
}

/** What a path stands for, by the name of its part. */
const KINDS: Readonly<Record<string, Kind>> = {
  sandbox_id: "sandbox",
  name: "sandboxName",
  id: "volume",
  event_id: "event",
};

function parameterValue(values: Values, parameter: Parameter): fc.Arbitrary<unknown> {
  const kind = KINDS[parameter.name];
  if (parameter.in === "path" && kind)
    return fc.oneof({ weight: 8, arbitrary: refs(kind) }, absent(kind));
  if (parameter.in === "header" && CONDITIONS.includes(parameter.name))
    return fc.oneof(refs("etag"), conditions);
  return values.of(schemaOf(parameter), `${parameter.in}.${parameter.name}`);
}

// Every text is one that a server has to take.
const CONDITIONS = ["Range", "If-Match", "If-None-Match", "If-Range", "If-Modified-Since"];
const conditions = fc.constantFrom(
  '"none"',
  "*",
  "bytes=0-9",
  "bytes=-5",
  "bytes=3-",
  "Fri, 01 Jan 2100 00:00:00 GMT",
);

function refs(kind: Kind): fc.Arbitrary<Ref> {
  return fc.nat({ max: 1000 }).map((pick) => new Ref(kind, pick));
}

/** One that fits by form, but is not there. */
function absent(kind: Kind): fc.Arbitrary<string> {
  return kind === "sandboxName" ? fc.stringMatching(/^[A-Za-z0-9 é/?#%]{1,20}$/) : fc.uuid();
}

function optionally<T>(always: boolean, value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return always ? value : fc.option(value, { nil: undefined, freq: 2 });
}

/** Idempotency keys are few, so that they come again: with the same request, and with another. */
const commonHeaders = fc.record<Record<string, unknown>>(
  {
    "Idempotency-Key": fc.oneof(
      fc.nat({ max: 30 }).map((n) => `again-${n}`),
      { weight: 4, arbitrary: fc.stringMatching(/^[!-~]{12,40}$/) },
    ),
    "X-Request-Id": fc.stringMatching(/^[!-~]{1,128}$/),
    Accept: fc.constantFrom("*/*", "application/json", "text/html", "application/xml;q=0.1"),
    "Accept-Encoding": fc.constantFrom("gzip", "identity", "br;q=1.0, *;q=0.5"),
    Origin: fc.constant("https://elsewhere.example"),
    Cookie: fc.constant("session=1"),
  },
  { requiredKeys: [] },
);
