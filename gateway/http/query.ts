import type { TObject, TSchema } from "typebox";

/** A query as Fastify parses it: a parameter that repeats is an array. */
export type RawQuery = Record<string, string | string[] | undefined>;

/**
 * The parameters that a schema knows, as its types: a query has strings alone. Text that is no
 * value of the type stays text, for the schema to refuse.
 */
export function readQuery(schema: TObject, raw: RawQuery): Record<string, unknown> {
  const known = Object.entries(schema.properties).filter(([name]) => Object.hasOwn(raw, name));
  return Object.fromEntries(known.map(([name, type]) => [name, readValue(type, raw[name])]));
}

function readValue(type: TSchema, raw: string | string[] | undefined): unknown {
  const kind = "type" in type ? type.type : undefined;
  if (kind === "array") return [raw].flat();
  return typeof raw === "string" ? readText(kind, raw) : raw;
}

function readText(kind: unknown, text: string): unknown {
  switch (kind) {
    case "integer":
      return /^-?\d+$/.test(text) ? Number(text) : text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "object":
      return parseJson(text);
    default:
      return text;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
