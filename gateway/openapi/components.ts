import { asRecord } from "../validation/rule.ts";

type Json = Record<string, unknown>;

/** Schemas by name, filled as they are referred to. */
export type Schemas = Record<string, Json>;

/**
 * A schema as the reference shows it: one with a title becomes a component and a reference to it,
 * and what only the validator understands goes.
 * @throws Error where two different schemas bear one title
 */
export function publish(schema: unknown, schemas: Schemas): unknown {
  const json = asRecord(schema);
  if (!json) return schema;
  const { title, ...rest } = shown(json);
  const published = withMapping(rest, mergeNull(publishParts(rest, schemas)));
  if (typeof title !== "string") return published;
  addSchema(schemas, title, published);
  return { $ref: refTo(title) };
}

/** Its `published` form, where it has one, with title and description kept. */
function shown(schema: Json): Json {
  const { rule: _rule, hint: _hint, published, ...rest } = schema;
  const { title, description } = rest;
  return asRecord(published) ? { title, description, ...asRecord(published) } : rest;
}

// Where a schema has schemas inside; everything else is data.
const MAPS = ["properties"];
const LISTS = ["anyOf", "oneOf", "prefixItems"];
const SINGLE = ["items", "additionalProperties"];

function publishParts(schema: Json, schemas: Schemas): Json {
  return mapValues(schema, (value, key) => {
    if (MAPS.includes(key)) return mapValues(value as Json, (part) => publish(part, schemas));
    if (LISTS.includes(key)) return (value as unknown[]).map((part) => publish(part, schemas));
    return SINGLE.includes(key) ? publish(value, schemas) : value;
  });
}

/** `anyOf` of a plain type and null reads better as one type. */
function mergeNull(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  const [value, none, ...more] = Array.isArray(anyOf) ? anyOf.map(asRecord) : [];
  if (none?.type !== "null" || more.length > 0 || typeof value?.type !== "string") return schema;
  const words = Array.isArray(value.enum) ? { enum: [...value.enum, null] } : {};
  return { ...value, ...words, type: [value.type, "null"], ...rest };
}

/** Tells which branch is a component for which tag: the components have names of their own. */
function withMapping(original: Json, published: Json): Json {
  const tag = asRecord(original.discriminator)?.propertyName;
  if (typeof tag !== "string" || !Array.isArray(original.oneOf)) return published;
  const mapping = original.oneOf.map(({ title, properties }) => [
    properties[tag].const,
    refTo(title),
  ]);
  return {
    ...published,
    discriminator: { propertyName: tag, mapping: Object.fromEntries(mapping) },
  };
}

function addSchema(schemas: Schemas, title: string, schema: Json): void {
  const known = schemas[title];
  if (known && JSON.stringify(known) !== JSON.stringify(schema))
    throw new Error(`two schemas are called ${title}`);
  schemas[title] = schema;
}

function refTo(title: string): string {
  return `#/components/schemas/${title}`;
}

function mapValues(object: Json, change: (value: unknown, key: string) => unknown): Json {
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [key, change(value, key)]),
  );
}
