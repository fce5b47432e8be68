import { createHash, timingSafeEqual } from "node:crypto";
import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import type { PagePoint } from "../store.ts";
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
  const after = input.cursor === "" ? null : openCursor(ctx, input.cursor, filters);
  const { sandboxes, next } = await ctx.store.list({
    orgId: caller.orgId,
    limit: input.limit || DEFAULT_LIMIT,
    after,
    labels: Object.keys(input.labels).length > 0 ? input.labels : null,
    statuses: input.statuses.length > 0 ? input.statuses : null,
  });
  return { sandboxes, nextCursor: next && makeCursor(ctx, next, filters) };
}

// A cursor is good for the organization and filters that it was made with, whatever their order.
function filterDigest(orgId: string, { labels, statuses }: ListSandboxes): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  const filters = JSON.stringify([orgId, sorted, [...new Set(statuses)].sort()]);
  return createHash("sha256").update(filters).digest("base64url");
}

function makeCursor(ctx: SandboxContext, point: PagePoint, filters: string): string {
  const place = `${point.createdUs}.${point.id}`;
  return Buffer.from(`${place}.${signature(ctx, place, filters)}`).toString("base64url");
}

function signature(ctx: SandboxContext, place: string, filters: string): string {
  return Buffer.from(ctx.sign(`${place}.${filters}`)).toString("base64url");
}

function openCursor(ctx: SandboxContext, cursor: string, filters: string): PagePoint {
  const [createdUs = "", id = "", given = ""] = Buffer.from(cursor, "base64url")
    .toString()
    .split(".");
  const due = Buffer.from(signature(ctx, `${createdUs}.${id}`, filters));
  const signed = Buffer.from(given);
  if (signed.length !== due.length || !timingSafeEqual(signed, due))
    throw invalidRequest([{ field: "cursor", message: "is not a cursor of this list" }]);
  return { createdUs, id };
}
