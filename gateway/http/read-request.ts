import type { FastifyReply, FastifyRequest } from "fastify";
import type { Static, TObject, TSchema } from "typebox";
import { invalidRequest } from "../errors.ts";
import { ignoredFields } from "../validation/ignored.ts";
import { type Check, type Checked, compile } from "../validation/validator.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { Operation, OperationBody } from "./operation.ts";
import { type RawQuery, readQuery } from "./query.ts";

// Node refuses larger headers, and so do clients.
const MAX_HEADER = 4096;

/**
 * Reads requests of one operation: path, query, body and idempotency key, with every fault of them all. Fields that
 * are let pass unread are named in the answer's `X-Ignored-Fields`.
 * @throws PublicError (invalid_request), from what it returns
 */
export function requestReader<P extends TObject, Q extends TObject, B extends TSchema>(
  operation: Operation<P, Q, B>,
) {
  const params = compile(operation.params, "path");
  const query = compile(operation.query, "query");
  const body = bodyReader(operation.body);
  return (request: FastifyRequest, reply: FastifyReply) => {
    // Fastify parses a query into strings and arrays of strings.
    const raw = readQuery(operation.query, request.query as RawQuery);
    const key = readIdempotencyKey(request);
    const read = all(params(request.params), query(raw), body(request.body), key);
    if (operation.body) nameIgnored(operation.body.schema, read.body, reply);
    return read;
  };
}

function bodyReader<B extends TSchema>(body: OperationBody<B> | undefined): Check<Static<B>> {
  // Of a body that no operation asked for nothing was read.
  if (!body) return (value) => ({ value: value as Static<B> });
  const check = compile(body.schema, "body");
  const absent = [{ field: "body", message: "is required" }];
  return (value) => {
    if (value !== undefined) return check(value);
    return body.optional ? check({}) : { faults: absent };
  };
}

function all<P, Q, B, K>(params: Checked<P>, query: Checked<Q>, body: Checked<B>, key: Checked<K>) {
  if ("value" in params && "value" in query && "value" in body && "value" in key)
    return {
      params: params.value,
      query: query.value,
      body: body.value,
      idempotencyKey: key.value,
    };
  throw invalidRequest(
    [params, query, body, key].flatMap((checked) => ("faults" in checked ? checked.faults : [])),
  );
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
