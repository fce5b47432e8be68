import Type, { type Static, type TObject, type TSchema } from "typebox";
import type { ErrorCode } from "../errors.ts";

/** A documented request body. */
export interface OperationBody<B extends TSchema> {
  schema: B;
  /** Whether it may be absent, which then counts as `{}`. */
  optional?: boolean;
  /** In bytes; 1 MiB where it is not set. */
  limit?: number;
  example: Static<B>;
}

/** What a route takes and answers: what validates it, and what documents it. */
export interface Operation<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
  R extends TSchema = TSchema,
> {
  /** Unique, in camel case. */
  id: string;
  tag: string;
  summary: string;
  description: string;
  params: P;
  query: Q;
  /** Of the request, beside those of every operation; what reads them checks them. */
  headers: TObject;
  body: OperationBody<B> | undefined;
  /** Of a success; a stream is described as the text that it is. */
  media: "application/json" | "text/event-stream";
  response: R;
  example: Static<R>;
  /** Beyond those of every operation. */
  errors: readonly ErrorCode[];
  /** Whether it is answered without a key. */
  open: boolean;
}

type None = TObject<Record<never, never>>;
type Optional = "params" | "query" | "headers" | "body" | "media" | "errors" | "open";

/** An operation, of which what it does not have may be left out. */
export function operation<
  R extends TSchema,
  P extends TObject = None,
  Q extends TObject = None,
  B extends TSchema = None,
>(
  given: Omit<Operation<P, Q, B, R>, Optional> & Partial<Pick<Operation<P, Q, B, R>, Optional>>,
): Operation<P, Q, B, R> {
  // Where P or Q is not given it is None, which has no fields.
  const none = Type.Object({}) as unknown as P & Q;
  const rest = { headers: none, media: "application/json", errors: [], open: false } as const;
  return { params: none, query: none, body: undefined, ...rest, ...given };
}
