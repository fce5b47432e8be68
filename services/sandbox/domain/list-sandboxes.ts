import type { Caller } from "../../../runtime/caller.ts";
import { type Page, type PageRequest, page } from "../../../runtime/pages.ts";
import type { SandboxContext } from "../context.ts";
import type { SeenSandbox, Status } from "./sandbox.ts";

export interface ListSandboxes extends PageRequest {
  labels: Record<string, string>;
  statuses: Status[];
  omitSpecs?: boolean;
}

/**
 * Newest first.
 * @throws ServiceError (INVALID_REQUEST) for a cursor of another list
 */
export function listSandboxes(
  ctx: SandboxContext,
  { orgId }: Caller,
  { labels, statuses, omitSpecs = false, ...request }: ListSandboxes,
): Promise<Page<SeenSandbox>> {
  // Whatever their order, filters are the same.
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  const filters = [sorted, [...new Set(statuses)].sort()];
  return page(ctx.sign, { list: "sandboxes", orgId, filters }, request, (limit, after) =>
    ctx.store.list({
      orgId,
      limit,
      after,
      labels: sorted.length > 0 ? labels : null,
      statuses: statuses.length > 0 ? statuses : null,
      omitSpecs,
    }),
  );
}
