import { createHash, timingSafeEqual } from "node:crypto";
import { invalidRequest } from "./errors.ts";

/** A place in a list that is ordered by time, then id: microseconds since 1970 (kept as digits), then a UUID. */
export interface PagePoint {
  us: string;
  id: string;
}

/** Authenticates; 32 bytes. */
export type Sign = (data: string) => Uint8Array;

export interface PageRequest {
  /** 0: 20. */
  limit: number;
  /** Empty: the first page. */
  cursor: string;
}

/** The last row's place is in `next` where more follow. */
export interface Slice<Row> {
  rows: Row[];
  next: PagePoint | null;
}

export interface Page<Row> {
  rows: Row[];
  /** null: it is the last one. */
  nextCursor: string | null;
}

/** Which list it is, of which organization, and what of it; equal filters are equal as JSON. */
export interface Listed {
  list: string;
  orgId: string;
  filters: unknown;
}

const DEFAULT_LIMIT = 20;

/**
 * A page of a list, by an opaque cursor that is good for this list and these filters alone.
 * @throws ServiceError (INVALID_REQUEST) for any other cursor
 */
export async function page<Row>(
  sign: Sign,
  { list, orgId, filters }: Listed,
  { limit, cursor }: PageRequest,
  read: (limit: number, after: PagePoint | null) => Promise<Slice<Row>>,
): Promise<Page<Row>> {
  const digest = createHash("sha256")
    .update(JSON.stringify([list, orgId, filters]))
    .digest("base64url");
  const after = cursor === "" ? null : openCursor(sign, cursor, digest);
  if (after === undefined)
    throw invalidRequest([{ field: "cursor", message: "is not a cursor of this list" }]);
  const { rows, next } = await read(limit || DEFAULT_LIMIT, after);
  return { rows, nextCursor: next && makeCursor(sign, next, digest) };
}

function makeCursor(sign: Sign, point: PagePoint, digest: string): string {
  const place = `${point.us}.${point.id}`;
  return Buffer.from(`${place}.${signature(sign, place, digest)}`).toString("base64url");
}

/** The place of a cursor; undefined where it was not made for this digest, or by nobody of ours. */
function openCursor(sign: Sign, cursor: string, digest: string): PagePoint | undefined {
  const [us = "", id = "", given = ""] = Buffer.from(cursor, "base64url").toString().split(".");
  const due = Buffer.from(signature(sign, `${us}.${id}`, digest));
  const signed = Buffer.from(given);
  if (signed.length !== due.length || !timingSafeEqual(signed, due)) return undefined;
  return { us, id };
}

function signature(sign: Sign, place: string, digest: string): string {
  return Buffer.from(sign(`${place}.${digest}`)).toString("base64url");
}
