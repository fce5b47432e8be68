import type { Schema } from "./document.ts";

/** The text of a path as it was meant. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The texts of a parameter as a value of its schema's type; what is no such value stays text. */
export function typed({ type, additionalProperties }: Schema, texts: string[]): unknown {
  if (type === "array") return texts;
  const [text = ""] = texts;
  if (texts.length > 1) return texts;
  if (type === "integer") return /^-?\d+$/.test(text) ? Number(text) : text;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return additionalProperties === undefined ? text : jsonOf(Buffer.from(text));
}

/** The value of JSON text; of what is none one that fits nowhere. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return Symbol.for("no JSON");
  }
}
