import type { Database } from "../../../prisma/database.ts";
import { Conditions, fromUs, slice, toUs } from "../../../prisma/pages.ts";
import type { PagePoint, Slice } from "../../../runtime/pages.ts";
import type { AuditEvent } from "../domain/event.ts";
import type { EventFilter } from "../domain/events.ts";

interface EventRow extends Omit<AuditEvent, "timestampUs"> {
  us: bigint;
}

const COLUMNS = `e.id, e.org_id AS "orgId", e.category, e.event_type AS "eventType", e.actor, e.payload,
  ${toUs("e.timestamp")} AS us`;

function toEvent({ us, ...row }: EventRow): AuditEvent {
  return { ...row, timestampUs: us };
}

export interface EventQuery extends EventFilter {
  orgId: string;
  limit: number;
  after: PagePoint | null;
}

/** Newest first. */
export async function listEvents(
  database: Database,
  query: EventQuery,
): Promise<Slice<AuditEvent>> {
  const { sql, values } = eventPage(query);
  const { rows, next } = slice(await database.query<EventRow>(sql, ...values), query.limit);
  return { rows: rows.map(toEvent), next };
}

/** The statement of a page, and its parameters. */
export function eventPage({ orgId, limit, after, eventType, sinceUs, untilUs }: EventQuery): {
  sql: string;
  values: unknown[];
} {
  const where = new Conditions();
  where.add(`e.org_id = ${where.place(orgId)}::uuid`);
  const most = where.place(limit + 1);
  where.behind(after, "e.timestamp", "e.id");
  if (eventType !== null) where.add(`e.event_type = ${where.place(eventType)}`);
  if (sinceUs !== null) where.add(`e.timestamp >= ${fromUs(where.place(String(sinceUs)))}`);
  if (untilUs !== null) where.add(`e.timestamp <= ${fromUs(where.place(String(untilUs)))}`);
  const sql = `SELECT ${COLUMNS} FROM organization.events e WHERE ${where.sql}
ORDER BY e.timestamp DESC, e.id DESC LIMIT ${most}::int`;
  return { sql, values: where.values };
}

export async function findEvent(
  database: Database,
  orgId: string,
  id: string,
): Promise<AuditEvent | undefined> {
  const [row] = await database.query<EventRow>(
    `SELECT ${COLUMNS} FROM organization.events e WHERE e.org_id = $1::uuid AND e.id = $2::uuid`,
    orgId,
    id,
  );
  return row && toEvent(row);
}
