import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Actor, Caller, Idempotency } from "../caller.ts";
import {
  ACTOR_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  ORGANIZATION_HEADER,
  REQUEST_ID_HEADER,
  REQUEST_SHA256_HEADER,
} from "./context.ts";

/** Who acts where a holder of the service token names an organization but nobody in particular. */
const SERVICE_ACTOR: Actor = { kind: "system", code: "service", label: "Service" };

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Writes a caller into request headers. */
export function writeCaller(header: Headers, caller: Caller): void {
  header.set(ORGANIZATION_HEADER, caller.orgId);
  writeActor(header, caller.actor);
  header.set(REQUEST_ID_HEADER, caller.requestId);
  if (!caller.idempotency) return;
  const { key, requestSha256 } = caller.idempotency;
  header.set(IDEMPOTENCY_KEY_HEADER, encodeURIComponent(key));
  header.set(REQUEST_SHA256_HEADER, Buffer.from(requestSha256).toString("base64"));
}

/** Writes who acts, as percent-encoded JSON: header values are ASCII, names are not. */
export function writeActor(header: Headers, actor: Actor): void {
  header.set(ACTOR_HEADER, encodeURIComponent(JSON.stringify(actor)));
}

/**
 * Reads the caller that `writeCaller` wrote; believe it only after the service token was checked.
 * @returns undefined where the headers name no organization
 * @throws ConnectError (InvalidArgument) where they are malformed
 */
export function readCaller(header: Headers): Caller | undefined {
  const orgId = header.get(ORGANIZATION_HEADER);
  if (orgId === null) return undefined;
  if (!UUID.test(orgId)) throw malformed(ORGANIZATION_HEADER, "a lower-case UUID");
  const idempotency = readIdempotency(header);
  return {
    orgId,
    actor: readActor(header) ?? SERVICE_ACTOR,
    requestId: readRequestId(header) ?? randomUUID(),
    ...(idempotency && { idempotency }),
  };
}

/** The request id of a call, where its headers have a sane one. */
export function readRequestId(header: Headers): string | undefined {
  const requestId = header.get(REQUEST_ID_HEADER);
  return requestId !== null && REQUEST_ID.test(requestId) ? requestId : undefined;
}

function readIdempotency(header: Headers): Idempotency | undefined {
  const text = header.get(IDEMPOTENCY_KEY_HEADER);
  if (text === null) return undefined;
  const key = /^(?:[\x21-\x24\x26-\x7e]|%[0-9A-F]{2}){1,765}$/.test(text) ? decode(text) : "";
  if (!IDEMPOTENCY_KEY.test(key))
    throw malformed(IDEMPOTENCY_KEY_HEADER, "1 to 255 printable ASCII characters, percent-encoded");
  const requestSha256 = Buffer.from(header.get(REQUEST_SHA256_HEADER) ?? "", "base64");
  if (requestSha256.length !== 32) throw malformed(REQUEST_SHA256_HEADER, "a SHA-256 in base64");
  return { key, requestSha256 };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/**
 * Reads who acts; believe it as `readCaller`.
 * @returns undefined where the headers name nobody
 * @throws ConnectError (InvalidArgument) where the header is malformed
 */
export function readActor(header: Headers): Actor | undefined {
  const text = header.get(ACTOR_HEADER);
  if (text === null) return undefined;
  const actor = parseActor(text);
  if (actor === undefined) throw malformed(ACTOR_HEADER, "the percent-encoded JSON of an actor");
  return actor;
}

function parseActor(text: string): Actor | undefined {
  let value: unknown;
  try {
    value = JSON.parse(decodeURIComponent(text));
  } catch {
    return undefined;
  }
  return isRecord(value) ? toActor(value) : undefined;
}

/** Copies what an actor has, so that nothing else gets into audit events. */
function toActor(given: Record<string, unknown>) {
  const { kind, api_key_id, name, code, label, user_id, redacted_email } = given;
  if (
    kind === "user" &&
    typeof user_id === "string" &&
    typeof label === "string" &&
    typeof redacted_email === "string"
  )
    return { kind, user_id, label, redacted_email } satisfies Actor;
  if (kind === "api_key" && typeof api_key_id === "string" && typeof name === "string")
    return { kind, api_key_id, name } satisfies Actor;
  if (kind === "system" && typeof code === "string" && typeof label === "string")
    return { kind, code, label } satisfies Actor;
  return undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function malformed(name: string, expected: string): ConnectError {
  return new ConnectError(`header ${name} is not ${expected}`, Code.InvalidArgument);
}
