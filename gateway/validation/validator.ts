import type { AnySchemaObject } from "ajv/dist/2020.js";
import type { Static, TSchema } from "typebox";
import type { FieldFault } from "../../runtime/errors.ts";
import { allFaults, firstFault, forValidator } from "./compile.ts";
import { faultsOf } from "./faults.ts";
import { isModest } from "./modest.ts";

/** A value that fits, or every fault of one that does not. */
export type Checked<T> = { value: T } | { faults: FieldFault[] };

/** Checks values of one shape. It changes nothing: no defaults, no coercion, nothing removed. */
export type Check<T> = (value: unknown) => Checked<T>;

/**
 * Compiles a schema. Values that fit are checked in one quick pass; for one that does not a second
 * pass looks for all its faults, unless it is so large that they would cost more than they help.
 * @param whole what stands for the path of the value as a whole, such as `body`
 */
export function compile<S extends TSchema>(schema: S, whole: string): Check<Static<S>> {
  const form = formOf(schema);
  const quick = firstFault.compile(form);
  return (value) => {
    // What a schema describes is what its validator lets through.
    if (quick(value)) return { value: value as Static<S> };
    // Compiled when it is first needed, which takes a while; Ajv keeps it.
    const thorough = allFaults.compile(form);
    const errors = isModest(value) && !thorough(value) ? thorough.errors : quick.errors;
    return { faults: faultsOf(errors ?? [], value, whole) };
  };
}

const forms = new WeakMap<TSchema, AnySchemaObject>();

/** Ajv knows a schema again by its identity. */
function formOf(schema: TSchema): AnySchemaObject {
  const form = forms.get(schema) ?? forValidator(schema);
  forms.set(schema, form);
  return form;
}
