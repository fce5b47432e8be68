import Type, { type Static, type TObject, type TSchema } from "typebox";
import type { ErrorCode, PublicError } from "../errors.ts";
import type { HeaderName } from "../openapi/info.ts";

/** A documented request body. */
export interface OperationBody<B extends TSchema> {
  /** `application/json` where it is not set. A body of any other kind is read by whoever answers, as it comes. */
  media?: "application/octet-stream";
  schema: B;
  /** Whether it may be absent, which then counts as `{}`. */
  optional?: boolean;
  /** In bytes; 1 MiB where it is not set. */
  limit?: number;
  example: Static<B>;
}

/** A success under another status than 200. */
export interface Variant {
  status: number;
  description: string;
  responseHeaders: readonly HeaderName[];
  /** Whether it has the body of the usual one, or a part of it. */
  hasBody: boolean;
}

/** What a route takes and answers: what validates it, and what documents it. */
export interface Operation<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
  R extends TSchema = TSchema,
  H extends TObject = TObject,
> {
  /** Unique, in camel case. */
  id: string;
  tag: string;
  summary: string;
  description: string;
  params: P;
  query: Q;
  /** Of the request, beside those of every operation; what changes something is also known again by them. */
  headers: H;
  body: OperationBody<B> | undefined;
  /** Of a success; a stream is described as the text that it is. */
  media: "application/json" | "text/event-stream" | "application/octet-stream";
  response: R;
  example: Static<R>;
  /** The JSON of an answer, where it can be had for less than by `JSON.stringify`; the same text. */
  text: ((answer: Static<R>) => string) | undefined;
  /** Of a success, beside those of every operation. */
  responseHeaders: readonly HeaderName[];
  /** Other successes. */
  variants: readonly Variant[];
  /** Beyond those of every operation. */
  errors: readonly ErrorCode[];
  /** Errors under another status than their code has. */
  refusals: readonly PublicError[];
  /** Whether it is answered without a key. */
  open: boolean;
}

type None = TObject<Record<never, never>>;
type Optional =
  | "params"
  | "query"
  | "headers"
  | "body"
  | "media"
  | "text"
  | "responseHeaders"
  | "variants"
  | "errors"
  | "refusals"
  | "open";

/** An operation, of which what it does not have may be left out. */
export function operation<
  R extends TSchema,
  P extends TObject = None,
  Q extends TObject = None,
  B extends TSchema = None,
  H extends TObject = None,
>(
  given: Omit<Operation<P, Q, B, R, H>, Optional> &
    Partial<Pick<Operation<P, Q, B, R, H>, Optional>>,
): Operation<P, Q, B, R, H> {
  // Where P, Q or H is not given it is None, which has no fields.
  const none = Type.Object({}) as unknown as P & Q & H;
  const asked = { params: none, query: none, headers: none, body: undefined, text: undefined };
  const answered = { media: "application/json", responseHeaders: [], variants: [] } as const;
  return { ...asked, ...answered, errors: [], refusals: [], open: false, ...given };
}
