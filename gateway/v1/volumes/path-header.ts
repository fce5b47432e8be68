import { textFault } from "../../validation/rule.ts";

const ALPHABET = /^[A-Za-z0-9_-]*$/;
const FORM = "must be unpadded base64url";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What is wrong with a path as it travels in a header. */
export function encodedPathFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const bytes = Buffer.from(value, "base64url");
  // Bits that are left over have to be zero: one path has one form.
  if (!ALPHABET.test(value) || bytes.toString("base64url") !== value) return FORM;
  try {
    return textFault(decoder.decode(bytes));
  } catch {
    return "must be of UTF-8";
  }
}

/** The path of a header that has no fault; empty, the root, where there is none. */
export function decodePath(header = ""): string {
  return Buffer.from(header, "base64url").toString("utf8");
}
