import type { Caller } from "../../../runtime/caller.ts";
import {
  filterDigest as digestOf,
  makeCursor,
  openCursor,
  type PagePoint,
} from "../../../runtime/page-cursor.ts";
import type { SandboxContext } from "../context.ts";
import { invalidRequest } from "./refusals.ts";
import type { Sandbox, Status } from "./sandbox.ts";

export interface ListSandboxes {
  /** 0: 20. */
  limit: number;
  /** Empty: the first page. */
  cursor: string;
  labels: Record<string, string>;
  statuses: Status[];
}

const DEFAULT_LIMIT = 20;

/** A page, newest first, and the cursor of the next one where there is one. */
export async function listSandboxes(
  ctx: SandboxContext,
  caller: Caller,
  input: ListSandboxes,
): Promise<{ sandboxes: Sandbox[]; nextCursor: string | null }> {
  const filters = filterDigest(caller.orgId, input);
  const after = input.cursor === "" ? null : placeOf(ctx, input.cursor, filters);
  const { sandboxes, next } = await ctx.store.list({
    orgId: caller.orgId,
    limit: input.limit || DEFAULT_LIMIT,
    after,
    labels: Object.keys(input.labels).length > 0 ? input.labels : null,
    statuses: input.statuses.length > 0 ? input.statuses : null,
  });
  return { sandboxes, nextCursor: next && makeCursor(ctx.sign, next, filters) };
}

function filterDigest(orgId: string, { labels, statuses }: ListSandboxes): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return digestOf("sandboxes", orgId, [sorted, [...new Set(statuses)].sort()]);
}

function placeOf(ctx: SandboxContext, cursor: string, filters: string): PagePoint {
  const point = openCursor(ctx.sign, cursor, filters);
  if (!point) throw invalidRequest([{ field: "cursor", message: "is not a cursor of this list" }]);
  return point;
}
