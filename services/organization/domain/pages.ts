import {
  filterDigest,
  makeCursor,
  openCursor,
  type PagePoint,
} from "../../../runtime/page-cursor.ts";
import type { OrganizationContext } from "../context.ts";
import { invalidField } from "./refusals.ts";

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

const DEFAULT_LIMIT = 20;

/**
 * A page of a list of the organization, by a cursor that is good for this list and these filters alone.
 * @throws ServiceError (INVALID_REQUEST) for any other cursor
 */
export async function page<Row>(
  { sign }: Pick<OrganizationContext, "sign">,
  { list, orgId, filters }: { list: string; orgId: string; filters: unknown },
  { limit, cursor }: PageRequest,
  read: (limit: number, after: PagePoint | null) => Promise<Slice<Row>>,
): Promise<Page<Row>> {
  const digest = filterDigest(list, orgId, filters);
  const after = cursor === "" ? null : openCursor(sign, cursor, digest);
  if (after === undefined) throw invalidField("cursor", "is not a cursor of this list");
  const { rows, next } = await read(limit || DEFAULT_LIMIT, after);
  return { rows, nextCursor: next && makeCursor(sign, next, digest) };
}
