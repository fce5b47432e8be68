import { createHash, type Hash } from "node:crypto";
import { invalidRequest } from "../errors.ts";

// Nothing that a schema knows is nearly as deep.
const MAX_DEPTH = 200;
// In UTF-16 units: enough for a hash to be quick.
const CHUNK = 64 * 1024;
const SLICE = 4096;

/**
 * SHA-256 of what a request asks for: the same for a body that was written anew, with other spaces or its keys in
 * another order. What was parsed is read a piece at a time, so that it is never there twice.
 * @param url path and query, as sent
 * @param body as parsed; undefined is the same as `{}`
 * @param headers that say what is asked for, by name
 * @throws PublicError (invalid_request) on a body that is nested too deeply
 */
export function requestSha256(
  method: string,
  url: string,
  body: unknown = {},
  headers: object = {},
): Uint8Array {
  const hash = createHash("sha256").update(`${method} ${url}\n`);
  const writer = new CanonicalWriter(hash);
  writer.write(body, 0);
  if (Object.keys(headers).length > 0) writer.write(headers, 0);
  return writer.digest();
}

/** Writes JSON with the keys of each object in order, and a comma behind every part. */
class CanonicalWriter {
  readonly #hash: Hash;
  #text = "";

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  write(value: unknown, depth: number): void {
    if (depth > MAX_DEPTH) throw tooDeep();
    if (Array.isArray(value)) this.#writeArray(value, depth);
    else if (isParent(value)) this.#writeRecord(value, depth);
    else this.#add(JSON.stringify(value));
  }

  digest(): Uint8Array {
    return this.#hash.update(this.#text).digest();
  }

  #writeRecord(record: Record<string, unknown>, depth: number): void {
    this.#add("{");
    for (const key of Object.keys(record).sort()) {
      this.#add(`${JSON.stringify(key)}:`);
      this.write(record[key], depth + 1);
      this.#add(",");
    }
    this.#add("}");
  }

  // A file is an array of bytes, millions of them: those are written many at a time.
  #writeArray(array: readonly unknown[], depth: number): void {
    this.#add("[");
    for (let at = 0; at < array.length; at += SLICE) {
      const slice = array.slice(at, at + SLICE);
      if (!slice.some(isParent)) this.#add(`${JSON.stringify(slice).slice(1, -1)},`);
      else this.#writeEach(slice, depth);
    }
    this.#add("]");
  }

  #writeEach(values: readonly unknown[], depth: number): void {
    for (const value of values) {
      this.write(value, depth + 1);
      this.#add(",");
    }
  }

  #add(text: string): void {
    this.#text += text;
    if (this.#text.length < CHUNK) return;
    this.#hash.update(this.#text);
    this.#text = "";
  }
}

function isParent(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function tooDeep() {
  return invalidRequest([{ field: "body", message: "is nested too deeply" }]);
}
