import type { ErrorObject } from "ajv/dist/2020.js";
import type { FieldFault } from "../../runtime/errors.ts";
import type { RuleParams } from "./compile.ts";
import { joinPath, pathOfPointer } from "./path.ts";
import { MAX_FAULTS } from "./rule.ts";

// Keywords that only say that one below them failed.
const WRAPPERS = new Set(["if", "anyOf", "oneOf"]);

/**
 * Ajv's errors as public faults, at most `MAX_FAULTS`, one a path: what is wrong with a value of the
 * wrong type is its type.
 * @param whole what stands for the path of the value as a whole, such as `body`
 */
export function faultsOf(errors: readonly ErrorObject[], root: unknown, whole: string) {
  const faults = new Map<string, FieldFault>();
  for (const error of errors) {
    if (WRAPPERS.has(error.keyword)) continue;
    for (const { field, message } of toFaults(error, pathOfPointer(root, error.instancePath))) {
      if (!faults.has(field) || error.keyword === "type")
        faults.set(field, { field: field || whole, message });
      if (faults.size === MAX_FAULTS) return [...faults.values()];
    }
  }
  return [...faults.values()];
}

function toFaults(error: ErrorObject, path: string): FieldFault[] {
  const { keyword, params } = error;
  switch (keyword) {
    case "required":
      return [{ field: joinPath(path, params.missingProperty), message: "is required" }];
    case "additionalProperties":
      return [
        { field: joinPath(path, params.additionalProperty), message: "is not a known field" },
      ];
    case "discriminator":
      return [{ field: joinPath(path, params.tag), message: tagMessage(error) }];
    case "rule":
      // The shape is given by our own keyword in compile.ts.
      return (params as RuleParams).faults.map(({ at, message }) => ({
        field: at.reduce(joinPath, path),
        message,
      }));
    default:
      return [{ field: path, message: messageOf(error) }];
  }
}

function tagMessage({ params, parentSchema }: ErrorObject): string {
  if (params.tagValue === undefined) return "is required";
  const tag: string = params.tag;
  const branches: { properties: Record<string, { const: string }> }[] = parentSchema?.oneOf ?? [];
  return oneOf(branches.map(({ properties }) => properties[tag]?.const));
}

const TYPES: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  integer: "an integer",
  null: "null",
  object: "an object",
  string: "a string",
};

function messageOf({ keyword, params, parentSchema, message }: ErrorObject): string {
  switch (keyword) {
    case "type":
      return `must be ${TYPES[params.type] ?? params.type}`;
    case "enum":
      return oneOf(params.allowedValues);
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    case "pattern":
      return parentSchema?.hint ?? `must match ${params.pattern}`;
    case "minimum":
      return `must be at least ${params.limit}`;
    case "maximum":
      return `must be at most ${params.limit}`;
    case "minLength":
      return params.limit === 1
        ? "must not be empty"
        : `must have at least ${params.limit} characters`;
    case "maxLength":
      return `must have at most ${params.limit} characters`;
    default:
      return parentSchema?.hint ?? message ?? "does not fit";
  }
}

function oneOf(values: readonly unknown[]): string {
  return `must be one of ${values.join(", ")}`;
}
