import fc from "fast-check";
import { nameOf, type OpenApi, type Schema } from "./document.ts";
import { TEXTS, TOGETHER, text } from "./rules.ts";

const MAX_ITEMS = 4;
const MAX_KEYS = 4;

/** Values that fit the schemas of one document, and the rules that these cannot say. */
export class Values {
  readonly #schemas: Record<string, Schema>;
  readonly #made = new Map<string, fc.Arbitrary<unknown>>();

  constructor({ components }: OpenApi) {
    this.#schemas = components.schemas;
  }

  /** @param place what the value is, as in `TEXTS` */
  of(schema: Schema, place: string): fc.Arbitrary<unknown> {
    const ruled = TEXTS[place];
    if (ruled) return isNullable(schema) ? orNull(ruled) : ruled;
    if (schema.$ref) return this.#named(nameOf(schema.$ref));
    if ("const" in schema) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    const branches = schema.oneOf ?? schema.anyOf;
    if (branches) return fc.oneof(...branches.map((branch) => this.of(branch, place)));
    const types = [schema.type ?? []].flat();
    const whole = fc.oneof(...types.map((type) => this.#typed(type, schema, place)));
    return whole;
  }

  #named(name: string): fc.Arbitrary<unknown> {
    const known = this.#made.get(name);
    if (known) return known;
    const schema = this.#schemas[name];
    if (!schema) throw new Error(`no schema ${name}`);
    const fields = this.of(schema, name);
    const together = TOGETHER[name];
    const made = together
      ? fields.map((value) => (isRecord(value) ? together(value) : value))
      : fields;
    this.#made.set(name, made);
    return made;
  }

  #typed(type: string, schema: Schema, place: string): fc.Arbitrary<unknown> {
    switch (type) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return integer(schema);
      case "string":
        return string(schema);
      case "array":
        return this.#array(schema, place);
      case "object":
        return this.#object(schema, place);
      default:
        throw new Error(`${place}: a schema of type ${type}`);
    }
  }

  #array({ items, prefixItems, minItems = 0, maxItems }: Schema, place: string) {
    if (prefixItems)
      return fc.tuple(...prefixItems.map((item, i) => this.of(item, inItem(place, i))));
    if (!items) return fc.constant([]);
    const maxLength = Math.min(maxItems ?? MAX_ITEMS, MAX_ITEMS);
    return fc.array(this.of(items, `${place}[]`), { minLength: minItems, maxLength });
  }

  #object({ properties, additionalProperties, required = [] }: Schema, place: string) {
    if (properties) {
      const fields = Object.entries(properties).map(([key, property]) => {
        return [key, this.of(property, `${place}.${key}`)] as const;
      });
      return fc.record(Object.fromEntries(fields), { requiredKeys: required });
    }
    if (typeof additionalProperties !== "object") return fc.constant({});
    const key = (TEXTS[`${place}{}`] ?? text(12)) as fc.Arbitrary<string>;
    return fc.dictionary(key, this.of(additionalProperties, `${place}{}=`), { maxKeys: MAX_KEYS });
  }
}

/** `InitInput.env[0]` of the first item of each pair in `InitInput.env[]`. */
function inItem(place: string, i: number): string {
  return `${place.replace(/\[\]$/, "")}[${i}]`;
}

function orNull(arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.option(arbitrary, { nil: null, freq: 4 });
}

function isNullable({ type }: Schema): boolean {
  return Array.isArray(type) && type.includes("null");
}

function integer({ minimum, maximum }: Schema): fc.Arbitrary<number> {
  const min = minimum ?? Number.MIN_SAFE_INTEGER;
  const max = maximum ?? Number.MAX_SAFE_INTEGER;
  // Numbers that people send, and now and then any: a limit, or one next to it.
  const small = fc.integer({ min, max: Math.min(max, min + 64) });
  return fc.oneof({ weight: 3, arbitrary: small }, fc.integer({ min, max }));
}

function string({ pattern, format, minLength = 0 }: Schema & { minLength?: number }) {
  if (format === "uuid") return fc.uuid();
  if (format === "date-time") return time;
  if (pattern) return matching(pattern);
  return fc.oneof({ weight: 9, arbitrary: text(24, minLength) }, text(2_000, minLength));
}

const time = fc
  .date({
    min: new Date("0001-01-01T00:00:00Z"),
    max: new Date("9999-12-31T00:00:00Z"),
    noInvalidDate: true,
  })
  .map((date) => date.toISOString());

/** fast-check makes no text for lookaheads: they are looked at afterwards. */
function matching(pattern: string): fc.Arbitrary<string> {
  const whole = new RegExp(pattern);
  const plain = new RegExp(pattern.replaceAll(/\(\?=[^)]*\)/g, ""));
  return fc.stringMatching(plain, { maxLength: 60 }).filter((value) => whole.test(value));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
