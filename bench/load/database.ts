import { withClient } from "../../runtime/postgres/connect.ts";

/** Rows of each table that has some, by its name. */
export function countRows(url: string): Promise<Map<string, number>> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string; rows: string }>(
      `SELECT schemaname || '.' || tablename AS name,
              (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I.%I', schemaname, tablename),
                false, true, '')))[1]::text AS rows
         FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema', 'public') ORDER BY 1`,
    );
    const counts = rows.map(({ name, rows: n }) => [name, Number(n)] as [string, number]);
    return new Map(counts.filter(([, n]) => n > 0));
  });
}

/** Connections of all services together, and the size of the database in MiB. */
export function lookAtDatabase(url: string): Promise<{ connections: number; mib: number }> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ connections: number; bytes: string }>(
      `SELECT (SELECT count(*)::int FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()) AS connections,
              pg_database_size(current_database()) AS bytes`,
    );
    return { connections: rows[0]?.connections ?? 0, mib: Number(rows[0]?.bytes ?? 0) / 2 ** 20 };
  });
}

/** Waits until what was destroyed is gone: its row goes once the engine said so. */
export async function settle(url: string): Promise<number> {
  const left = () =>
    withClient(url, async (client) => {
      const { rows } = await client.query<{ left: number }>(
        `SELECT ((SELECT count(*) FROM sandbox.sandboxes WHERE destroyed_at IS NOT NULL) +
                 (SELECT count(*) FROM sandbox.volumes WHERE deleted_at IS NOT NULL))::int AS left`,
      );
      return rows[0]?.left ?? 0;
    });
  const end = performance.now() + 30_000;
  while (performance.now() < end && (await left()) > 0)
    await new Promise((again) => setTimeout(again, 200));
  return left();
}
