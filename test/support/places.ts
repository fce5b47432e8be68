/** An organization's places: as its row keeps them, and as its sandboxes and runs are. */
export interface PlacesRow {
  orgId: string;
  /** Sandboxes, ephemeral and persistent runs that hold a place, such as `3/1/0`. */
  kept: string;
  counted: string;
}

/** Of every organization, in one snapshot: at any moment the two agree. */
export const PLACES_SQL = `
SELECT org_id AS "orgId",
       concat_ws('/', coalesce(p.total_sandboxes, 0), coalesce(p.ephemeral_running, 0), coalesce(p.persistent_running, 0)) AS kept,
       concat_ws('/', coalesce(c.sandboxes, 0), coalesce(c.ephemeral, 0), coalesce(c.persistent, 0)) AS counted
FROM sandbox.places p FULL JOIN (
  SELECT org_id, sum(sandboxes) AS sandboxes, sum(ephemeral) AS ephemeral, sum(persistent) AS persistent
  FROM (
    SELECT org_id, 1 AS sandboxes, 0 AS ephemeral, 0 AS persistent FROM sandbox.sandboxes WHERE destroyed_at IS NULL
    UNION ALL
    SELECT org_id, 0, ephemeral::int, (NOT ephemeral)::int FROM sandbox.runs WHERE closed_at IS NULL AND desired = 'running'
  ) each
  GROUP BY org_id
) c USING (org_id)
ORDER BY org_id`;

/** A sentence for each organization whose places are not what they should be. */
export function wrongPlaces(rows: readonly PlacesRow[]): string[] {
  return rows
    .filter(({ kept, counted }) => kept !== counted)
    .map(({ orgId, kept, counted }) => `${orgId}: places ${kept}, but rows ${counted}`);
}
