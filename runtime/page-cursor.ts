import { createHash, timingSafeEqual } from "node:crypto";

/** A place in a list that is ordered by time, then id: microseconds since 1970 (kept as digits), then a UUID. */
export interface PagePoint {
  us: string;
  id: string;
}

/** Authenticates; 32 bytes. */
export type Sign = (data: string) => Uint8Array;

/** What a cursor is good for: a list's name, its organization and its filters, whatever their order. */
export function filterDigest(list: string, orgId: string, filters: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([list, orgId, filters]))
    .digest("base64url");
}

/** An opaque cursor behind `point`. @param digest of filterDigest */
export function makeCursor(sign: Sign, point: PagePoint, digest: string): string {
  const place = `${point.us}.${point.id}`;
  return Buffer.from(`${place}.${signature(sign, place, digest)}`).toString("base64url");
}

/** The place of a cursor; undefined where it was not made for these filters, or by nobody of ours. */
export function openCursor(sign: Sign, cursor: string, digest: string): PagePoint | undefined {
  const [us = "", id = "", given = ""] = Buffer.from(cursor, "base64url").toString().split(".");
  const due = Buffer.from(signature(sign, `${us}.${id}`, digest));
  const signed = Buffer.from(given);
  if (signed.length !== due.length || !timingSafeEqual(signed, due)) return undefined;
  return { us, id };
}

function signature(sign: Sign, place: string, digest: string): string {
  return Buffer.from(sign(`${place}.${digest}`)).toString("base64url");
}
