/** A fault inside the checked value: `at` leads to it, [] being the value itself. */
export interface RuleFault {
  at: readonly (string | number)[];
  message: string;
}

/**
 * A check of one value that JSON Schema cannot express. It sees values of any shape, for their other
 * faults are found beside it, and says nothing where the shape is wrong.
 * @returns what is wrong with the value itself, or faults inside it; undefined or []: nothing
 */
export type Rule = (value: unknown) => string | readonly RuleFault[] | undefined;

/** Most faults that one answer names. */
export const MAX_FAULTS = 1000;

/** A record as JSON.parse makes it, or undefined for anything else. */
export function asRecord(value: unknown): Record<string, unknown> | undefined {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  // JSON.parse makes no other objects than records and arrays.
  return isRecord ? (value as Record<string, unknown>) : undefined;
}

/** What UTF-8 or PostgreSQL cannot carry. */
export function textFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  return unicodeFault(value) ?? (value.includes("\0") ? "must not contain NUL" : undefined);
}

/** A lone surrogate would be replaced on its way through UTF-8. */
export function unicodeFault(value: unknown): string | undefined {
  if (typeof value !== "string" || value.isWellFormed()) return undefined;
  return "must be well-formed Unicode";
}

export function utf8Length(text: string): number {
  return Buffer.byteLength(text, "utf8");
}
