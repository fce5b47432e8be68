import type { Database } from "../../../prisma/database.ts";

/**
 * The first answer stays.
 * @returns what is on record now; undefined where nothing is
 */
export async function keepAnswer(
  database: Database,
  orgId: string,
  key: string,
  answer: Uint8Array,
): Promise<Uint8Array | undefined> {
  const [row] = await database.query<{ answer: Uint8Array }>(
    `UPDATE organization.idempotency SET answer = coalesce(answer, $3)
     WHERE org_id = $1::uuid AND key = $2 AND expires_at > now() RETURNING answer`,
    orgId,
    key,
    answer,
  );
  return row?.answer;
}
