import type { TSchema } from "typebox";
import { joinPath } from "./path.ts";
import { asRecord } from "./rule.ts";

/**
 * The paths of fields in a valid value that its schema does not know. Where unknown fields are
 * faults, nothing below can have any, so nothing there is looked at.
 */
export function ignoredFields(schema: TSchema, value: unknown): string[] {
  return [...walk(schema as Form, value, "")];
}

/** The keywords that are looked at. */
interface Form {
  anyOf?: Form[];
  oneOf?: Form[];
  discriminator?: { propertyName: string };
  properties?: Record<string, Form>;
  additionalProperties?: unknown;
  items?: Form;
}

function* walk(schema: Form, value: unknown, path: string): Generator<string> {
  const form = branchOf(schema, value);
  if (form === undefined || form.additionalProperties !== undefined) return;
  if (Array.isArray(value) && form.items) {
    for (const [i, item] of value.entries()) yield* walk(form.items, item, joinPath(path, i));
  } else if (form.properties) yield* walkRecord(form.properties, asRecord(value) ?? {}, path);
}

function* walkRecord(properties: Record<string, Form>, value: Record<string, unknown>, at: string) {
  for (const [key, child] of Object.entries(value)) {
    const form = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (form) yield* walk(form, child, joinPath(at, key));
    else yield joinPath(at, key);
  }
}

/** The schema that applies to `value`: of a nullable one what is not null, of a tagged one the branch. */
function branchOf(schema: Form, value: unknown): Form | undefined {
  if (schema.anyOf) return schema.anyOf[0] && branchOf(schema.anyOf[0], value);
  const { discriminator, oneOf } = schema;
  if (!discriminator || !oneOf) return schema;
  const tag = asRecord(value)?.[discriminator.propertyName];
  return oneOf.find(({ properties }) => constOf(properties?.[discriminator.propertyName]) === tag);
}

function constOf(schema: object | undefined): unknown {
  return schema && "const" in schema ? schema.const : undefined;
}
