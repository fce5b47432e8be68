import { Ajv2020, type AnySchemaObject, type FuncKeywordDefinition } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import type { Rule, RuleFault } from "./rule.ts";

/** The `params` of an error of keyword `rule`. */
export interface RuleParams {
  faults: readonly RuleFault[];
}

const ruleKeyword: FuncKeywordDefinition = {
  keyword: "rule",
  errors: "full",
  compile: (rule: Rule) =>
    function check(value: unknown): boolean {
      const found = rule(value);
      const faults = typeof found === "string" ? [{ at: [], message: found }] : (found ?? []);
      // Ajv reads a keyword's errors from the function itself.
      Object.assign(check, { errors: [{ keyword: "rule", params: { faults } }] });
      return faults.length === 0;
    },
};

/** Two compilers of the same schemas: one stops at the first fault, one finds all. */
export const firstFault = createAjv(false);
export const allFaults = createAjv(true);

function createAjv(allErrors: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    discriminator: true,
    // Own properties only: a field named `toString` is not there unless it was sent.
    ownProperties: true,
    strictTypes: false,
    // Formats are annotations here; what must hold is a pattern or a rule.
    validateFormats: false,
    verbose: true,
  });
  ajv.addVocabulary(["hint"]);
  return ajv.addKeyword(ruleKeyword);
}

/** A published schema as the validator takes it: a nullable field reports the faults of what it holds. */
export function forValidator(schema: TSchema): AnySchemaObject {
  return rewrite(schema) as AnySchemaObject;
}

function rewrite(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(rewrite);
  if (typeof schema !== "object" || schema === null) return schema;
  const { published: _, ...rest } = schema as Record<string, unknown>;
  const copy = Object.fromEntries(Object.entries(rest).map(([key, at]) => [key, rewrite(at)]));
  const inner = nullableOf(copy);
  return inner === undefined ? copy : { if: { type: "null" }, else: inner };
}

function nullableOf(schema: Record<string, unknown>): unknown {
  const { anyOf } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || anyOf[1]?.type !== "null") return undefined;
  return anyOf[0];
}
