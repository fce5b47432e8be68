import type { Database } from "../../../prisma/database.ts";
import { inCall } from "../../../runtime/current-call.ts";
import { Together } from "../../../runtime/together.ts";
import type { Sandbox, SandboxKey } from "../domain/sandbox.ts";
import { columns, type SandboxRow, toSandbox } from "./rows.ts";

// No index serves IS NOT DISTINCT FROM: where a table has no statistics yet, ids would be sought among all of an organization.
const FIND = {
  id: "s.org_id IS NOT DISTINCT FROM $1::uuid AND s.id = ANY($2::uuid[])",
  name: "s.org_id = $1::uuid AND s.name = ANY($2::text[])",
};

/** Finds sandboxes by id or name; those that one organization looks for at the same moment by one statement. */
export function sandboxFinder(database: Database) {
  const by = { id: finder(database, "id"), name: finder(database, "name") };
  return async (orgId: string, key: SandboxKey): Promise<Sandbox | undefined> => {
    if ("id" in key) return by.id.find(orgId, key.id.toLowerCase());
    // PostgreSQL knows no such text, and would refuse all that are looked for with it.
    return key.name.includes("\0") ? undefined : by.name.find(orgId, key.name);
  };
}

function finder(database: Database, column: "id" | "name"): Together<string, Sandbox> {
  const sql = `SELECT ${columns("s")} FROM sandbox.sandboxes s WHERE ${FIND[column]} AND s.destroyed_at IS NULL`;
  const find = async (orgId: string, keys: readonly string[]) => {
    // For all of them, whichever of their calls ends first.
    const ask = () => database.query<SandboxRow>(sql, orgId, keys);
    const rows = await inCall({ owner: orgId, signal: undefined }, ask);
    return new Map(rows.map((row) => [row[column], toSandbox(row)]));
  };
  return new Together({ find });
}
