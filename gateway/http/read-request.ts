import type { IncomingHttpHeaders } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Static, TObject, TSchema } from "typebox";
import type { FieldFault } from "../../runtime/errors.ts";
import { invalidRequest } from "../errors.ts";
import { ignoredFields } from "../validation/ignored.ts";
import { type Check, type Checked, compile } from "../validation/validator.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { Operation, OperationBody } from "./operation.ts";
import { type RawQuery, readQuery } from "./query.ts";

// Node refuses larger headers, and so do clients.
const MAX_HEADER = 4096;

/**
 * Reads requests of one operation: path, query, headers, body and idempotency key, with every fault of them all. Fields that
 * are let pass unread are named in the answer's `X-Ignored-Fields`.
 * @throws PublicError (invalid_request), from what it returns
 */
export function requestReader<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  H extends TObject,
>(operation: Operation<P, Q, B, TSchema, H>) {
  const params = compile(operation.params, "path");
  const query = compile(operation.query, "query");
  const headers = headerReader(operation.headers);
  const body = bodyReader(operation.body);
  return (request: FastifyRequest, reply: FastifyReply) => {
    // Fastify parses a query into strings and arrays of strings.
    const raw = readQuery(operation.query, request.query as RawQuery);
    const key = readIdempotencyKey(request);
    const read = all({
      params: params(request.params),
      query: query(raw),
      headers: headers(request.headers),
      body: body(request.body),
      idempotencyKey: key,
    });
    if (operation.body) nameIgnored(operation.body.schema, read.body, reply);
    return read;
  };
}

/** Of the headers that an operation documents; their names are those of the schema, and faults say them in lower case. */
function headerReader<H extends TObject>(schema: H): Check<Static<H>> {
  const check = compile(schema, "headers");
  const names = Object.keys(schema.properties);
  // Of most operations: nothing is looked at.
  if (names.length === 0) return () => check({});
  return (value) => {
    // Node's: names are in lower case, and one that repeats is joined.
    const sent = value as IncomingHttpHeaders;
    const given = names.map((name) => [name, sent[name.toLowerCase()]]);
    const checked = check(Object.fromEntries(given.filter(([, text]) => text !== undefined)));
    if ("value" in checked) return checked;
    const inHeaders = ({ field, message }: FieldFault) => ({
      field: `headers.${field.toLowerCase()}`,
      message,
    });
    return { faults: checked.faults.map(inHeaders) };
  };
}

function bodyReader<B extends TSchema>(body: OperationBody<B> | undefined): Check<Static<B>> {
  // Nothing was read of a body that no operation asked for, or that is read as it comes.
  if (!body || body.media) return (value) => ({ value: value as Static<B> });
  const check = compile(body.schema, "body");
  const absent = [{ field: "body", message: "is required" }];
  return (value) => {
    if (value !== undefined) return check(value);
    return body.optional ? check({}) : { faults: absent };
  };
}

/** @throws PublicError (invalid_request) with the faults of all of them */
function all<P, Q, H, B, K>({
  params,
  query,
  headers,
  body,
  idempotencyKey,
}: Parts<P, Q, H, B, K>) {
  if (
    "value" in params &&
    "value" in query &&
    "value" in headers &&
    "value" in body &&
    "value" in idempotencyKey
  )
    return {
      params: params.value,
      query: query.value,
      headers: headers.value,
      body: body.value,
      idempotencyKey: idempotencyKey.value,
    };
  const parts = [params, query, headers, body, idempotencyKey];
  throw invalidRequest(parts.flatMap((part) => ("faults" in part ? part.faults : [])));
}

interface Parts<P, Q, H, B, K> {
  params: Checked<P>;
  query: Checked<Q>;
  headers: Checked<H>;
  body: Checked<B>;
  idempotencyKey: Checked<K>;
}

function nameIgnored(schema: TSchema, body: unknown, reply: FastifyReply): void {
  const ignored = ignoredFields(schema, body);
  if (ignored.length > 0) reply.header("x-ignored-fields", join(ignored));
}

/** The names that a header has room for, `...` standing for the rest. */
function join(names: readonly string[]): string {
  const whole = names.join(", ");
  if (whole.length <= MAX_HEADER) return whole;
  const end = whole.lastIndexOf(", ", MAX_HEADER);
  return end > 0 ? `${whole.slice(0, end)}, ...` : "...";
}
