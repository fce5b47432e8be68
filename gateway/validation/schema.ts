import Type, {
  type Static,
  type TObject,
  type TObjectOptions,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
} from "typebox";
import { type Rule, textFault } from "./rule.ts";

/** What our schemas say beyond JSON Schema. */
export interface Annotations extends TSchemaOptions {
  /** Checks what JSON Schema cannot say. */
  rule?: Rule;
  /** What a value that misses `pattern` is told, such as `must be a slug`. */
  hint?: string;
  /** How the reference shows the schema, where the validator needs another form of it. */
  published?: object;
}

/** 2^53 - 1: the largest int64 that JSON numbers carry without rounding. */
export const INT64_MAX = Number.MAX_SAFE_INTEGER;
const INT32_MAX = 2_147_483_647;

/** An object in which an unknown field is a fault. */
export function strict<P extends TProperties>(properties: P, options: TObjectOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

/** A request field that may be left out; `null` says the same. */
export function optional<T extends TSchema>(schema: T, annotations: TSchemaOptions = {}) {
  return Type.Optional(nullable(schema, annotations));
}

export function nullable<T extends TSchema>(schema: T, annotations: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], annotations);
}

/** A union whose branch is named by the string in field `tag`; faults are those of that branch. */
export function tagged<const T extends TObject[]>(
  tag: string,
  branches: T,
  annotations: TSchemaOptions = {},
) {
  return Type.Unsafe<Static<T[number]>>({
    type: "object",
    discriminator: { propertyName: tag },
    oneOf: branches,
    ...annotations,
  });
}

/** One of some words. */
export function words<const T extends string[]>(values: readonly [...T], annotations = {}) {
  return Type.Unsafe<T[number]>({ type: "string", enum: values, ...annotations });
}

/** A map from any key to one kind of value. */
export function mapOf<T extends TSchema>(value: T, annotations: Annotations = {}) {
  return Type.Unsafe<Record<string, Static<T>>>({
    type: "object",
    additionalProperties: value,
    ...annotations,
  });
}

/** Any string that UTF-8 and PostgreSQL can carry. */
export function text(annotations: Annotations = {}) {
  return Type.String({ rule: textFault, ...annotations });
}

export function int32(minimum: number, annotations: TSchemaOptions = {}) {
  return Type.Integer({ format: "int32", minimum, maximum: INT32_MAX, ...annotations });
}

export function int64(minimum: number, annotations: TSchemaOptions = {}) {
  return Type.Integer({ format: "int64", minimum, maximum: INT64_MAX, ...annotations });
}
