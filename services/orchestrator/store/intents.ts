import type { Database } from "../../../prisma/database.ts";
import type { Intended, Intent, Outcome } from "../domain/files/once.ts";

/** Puts an intent on record, or says what is there. */
export async function intend(
  database: Database,
  { orgId, key, requestHash, verb, volumeId, holder }: Intent,
  leaseSecs: number,
): Promise<Intended> {
  const [row] = await database.query<{ intended: Intended }>(
    `SELECT organization.intend($1::uuid, $2::text, $3::bytea, $4::text, $5::uuid, $6::uuid, $7::float8) AS intended`,
    orgId,
    key,
    requestHash,
    verb,
    volumeId,
    holder,
    leaseSecs,
  );
  if (!row) throw new Error("the database told nothing of an intent");
  return row.intended;
}

/** Goes on holding it; 0 seconds: leaves it to the next one. @returns whether it was still held */
export function holdIntent(
  database: Database,
  { orgId, key, holder }: Intent,
  leaseSecs: number,
): Promise<boolean> {
  return answered(
    database,
    "SELECT organization.hold_intent($1::uuid, $2::text, $3::uuid, $4::float8) AS held",
    orgId,
    key,
    holder,
    leaseSecs,
  );
}

/** Writes down what came of it. @returns whether it was still held */
export function settleIntent(
  database: Database,
  { orgId, key, holder }: Intent,
  outcome: Outcome,
): Promise<boolean> {
  return answered(
    database,
    "SELECT organization.settle_intent($1::uuid, $2::text, $3::uuid, $4::jsonb) AS held",
    orgId,
    key,
    holder,
    JSON.stringify(outcome),
  );
}

/** Takes it off the record, as nothing was done. @returns whether it was still held */
export function withdrawIntent(
  database: Database,
  { orgId, key, holder }: Intent,
): Promise<boolean> {
  return answered(
    database,
    "SELECT organization.withdraw_intent($1::uuid, $2::text, $3::uuid) AS held",
    orgId,
    key,
    holder,
  );
}

async function answered(database: Database, sql: string, ...values: unknown[]): Promise<boolean> {
  const [row] = await database.query<{ held: boolean }>(sql, ...values);
  return row?.held ?? false;
}
