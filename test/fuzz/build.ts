import { applyToBody, breakText } from "./break-body.ts";
import type { Case } from "./cases.ts";
import type { Request } from "./http.ts";
import type { Pool } from "./pool.ts";
import { resolve } from "./ref.ts";
import type { Spoil } from "./spoils.ts";

/** A request, and what of it stayed as it was meant. */
export interface Built {
  request: Request;
  /** Nothing was spoiled. */
  isGood: boolean;
  /** Its method and path are still those of the operation. */
  isRouted: boolean;
  /** It still carries the key. */
  isKnown: boolean;
  /** The texts of its path and query, by the parameter's name; a repeated one has several. */
  path: Record<string, string>;
  query: Record<string, string[]>;
}

/** Looks up what a case names, and spoils what is to be spoiled. */
export function build(given: Case, pool: Pool, apiKey: string): Built {
  const { operation, spoils } = given;
  const path = pathOf(given, pool);
  const query = queryOf(given, pool);
  const { headers, isKnown } = headersOf(given, pool, apiKey);
  const body = bodyOf(given, pool, headers);
  const method = last(spoils, "method")?.value ?? operation.method;
  const url = last(spoils, "url");
  const pathText = bent(
    operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => path[name] ?? ""),
    url,
  );
  const queryText = [toText(query), ...all(spoils, "moreQuery").map(({ text }) => text)]
    .filter((text) => text !== "")
    .join("&");
  const target = `${pathText}${queryText === "" ? "" : `?${queryText}`}`;
  if (body) headers["Content-Length"] = String(body.length);
  return {
    request: {
      method,
      target: latin1(target),
      query: queryText,
      headers,
      body,
      about: Object.values(path)[0],
    },
    isGood: spoils.length === 0,
    isRouted: method === operation.method && url === undefined,
    isKnown,
    path,
    query,
  };
}

function pathOf({ path, spoils }: Case, pool: Pool): Record<string, string> {
  const texts = resolve(path, pool.named) as Record<string, unknown>;
  const entries = Object.entries(texts).map(([name, text]) => [
    name,
    encodeURIComponent(String(text)),
  ]);
  for (const { at, value } of all(spoils, "path")) {
    const entry = entries[at % entries.length];
    if (entry) entry[1] = value;
  }
  return Object.fromEntries(entries);
}

function queryOf({ operation, query, page, spoils }: Case, pool: Pool): Record<string, string[]> {
  const next = page === undefined ? undefined : pool.page(operation.id, page);
  const texts = next === undefined ? textsOf(query) : Object.fromEntries(repeated(next));
  for (const { at, value } of all(spoils, "query")) {
    const names = operation.parameters.filter((each) => each.in === "query");
    const name = names[at % names.length]?.name;
    if (name) texts[name] = at % 7 === 0 ? [...(texts[name] ?? []), value] : [value];
  }
  for (const { at, value } of all(spoils, "cursor"))
    if (texts.cursor) texts.cursor = [tampered(texts.cursor[0] ?? "", at, value)];
  return texts;
}

function repeated(query: string): [string, string[]][] {
  const params = new URLSearchParams(query);
  return [...new Set(params.keys())].map((name) => [name, params.getAll(name)]);
}

function textsOf(query: Record<string, unknown>): Record<string, string[]> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const texts = (value: unknown) => (Array.isArray(value) ? value.map(String) : [textOf(value)]);
  return Object.fromEntries(given.map(([name, value]) => [name, texts(value)]));
}

function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function toText(query: Record<string, string[]>): string {
  return Object.entries(query)
    .flatMap(([name, texts]) =>
      texts.map((text) => `${name}=${encodeURIComponent(text.toWellFormed())}`),
    )
    .join("&");
}

function tampered(cursor: string, at: number, value: string): string {
  const i = at % Math.max(cursor.length, 1);
  return `${cursor.slice(0, i)}${value.slice(0, 1)}${cursor.slice(i + 1)}`;
}

function headersOf({ operation, headers, spoils }: Case, pool: Pool, apiKey: string) {
  const given = Object.entries(resolve(headers, pool.named) as Record<string, unknown>);
  const texts = given.flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const result: Record<string, string> = Object.fromEntries(texts);
  const key = last(spoils, "key");
  if (!operation.open) result.Authorization = `Bearer ${apiKey}`;
  if (key) {
    delete result.Authorization;
    if (key.value !== undefined) result.Authorization = key.value;
  }
  if (operation.body) result["Content-Type"] = operation.body.media;
  for (const { value } of all(spoils, "contentType")) {
    delete result["Content-Type"];
    if (value !== undefined) result["Content-Type"] = value;
  }
  for (const { name, value } of all(spoils, "header")) result[name] = value;
  return { headers: result, isKnown: key === undefined };
}

function bodyOf({ body, spoils }: Case, pool: Pool, headers: Record<string, string>) {
  const text = last(spoils, "body")?.text;
  if (text !== undefined) return Buffer.from(text);
  if (body === undefined || last(spoils, "noBody")) {
    delete headers["Content-Type"];
    return undefined;
  }
  if (body instanceof Uint8Array) return Buffer.from(body);
  const value = applyToBody(resolve(body, pool.named), spoils);
  const json = Buffer.from(JSON.stringify(value) ?? "");
  return all(spoils, "text").reduce(breakText, json);
}

function bent(path: string, url: Extract<Spoil, { kind: "url" }> | undefined): string {
  switch (url?.how) {
    case "slash":
      return `${path}/`;
    case "double":
      return path.replace("/", "//");
    case "case":
      return path.toUpperCase();
    case "beyond":
      return `${path}/more`;
    case "fragment":
      return `${path}#here`;
    default:
      return path;
  }
}

// Node's client sends no other characters as they are.
function latin1(target: string): string {
  return target.replaceAll(/[^\x21-\xff]/gu, (char) => encodeURIComponent(char));
}

function all<K extends Spoil["kind"]>(spoils: readonly Spoil[], kind: K) {
  return spoils.filter((spoil): spoil is Extract<Spoil, { kind: K }> => spoil.kind === kind);
}

function last<K extends Spoil["kind"]>(spoils: readonly Spoil[], kind: K) {
  return all(spoils, kind).at(-1);
}
