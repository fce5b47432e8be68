import type { Database } from "../../../prisma/database.ts";
import { refusal } from "../../../prisma/database.ts";
import type { Memory, Remembered, Verb } from "../domain/idempotency.ts";
import { type KeptSandbox, keptSandbox, toKeptSandbox } from "./rows.ts";
import { type KeptVolume, keptVolume, toKeptVolume } from "./volume-rows.ts";

const KEPT = { sandbox: keptSandbox, volume: keptVolume };

/** Keeps, within the verb's statement, what it answers: the row `of`. Nothing where the parameter `key` is null. */
export function remember({ kind, verb }: Verb, of: string, key: string, hash: string): string {
  return `CASE WHEN ${key}::text IS NOT NULL THEN organization.remember(${of}.org_id, ${key}::text, ${hash}::bytea,
    '${kind}_${verb}', ${of}.id, jsonb_build_object('${kind}', ${KEPT[kind](of)}))::text END AS remembered`;
}

/** The parameters of `remember`. */
export function memoryValues(memory: Memory | undefined): [string | null, Uint8Array | null] {
  return [memory?.key ?? null, memory?.requestHash ?? null];
}

/** The statement was undone, for the key is on record. */
export function isOnRecord(error: unknown): boolean {
  return refusal(error)?.constraint === "idempotency_pkey";
}

/** Keeps a refusal. @returns whether it did: not where the key is on record */
export async function rememberRefusal(
  database: Database,
  orgId: string,
  { kind, verb }: Verb,
  { key, requestHash }: Memory,
  refused: { reason: string; message: string; metadata: Readonly<Record<string, string>> },
): Promise<boolean> {
  const { reason, message, metadata } = refused;
  const outcome = JSON.stringify({ refusal: { reason, message, metadata } });
  try {
    await database.query(
      "SELECT organization.remember($1::uuid, $2::text, $3::bytea, $4::text, NULL, $5::jsonb)::text AS remembered",
      orgId,
      key,
      requestHash,
      `${kind}_${verb}`,
      outcome,
    );
    return true;
  } catch (error) {
    if (!isOnRecord(error)) throw error;
    return false;
  }
}

// What `remember` and `rememberRefusal` wrote.
type Outcome =
  | { sandbox?: KeptSandbox; volume?: KeptVolume }
  | Extract<Remembered["outcome"], { refusal: unknown }>;

/** What is on record of a key; undefined: nothing, or it has expired. */
export async function findRemembered(
  database: Database,
  orgId: string,
  key: string,
): Promise<Remembered | undefined> {
  const [row] = await database.query<{
    hash: Uint8Array;
    outcome: Outcome;
    answer: Uint8Array | null;
  }>(
    `SELECT request_hash AS hash, outcome, answer FROM organization.idempotency
     WHERE org_id = $1::uuid AND key = $2 AND expires_at > clock_timestamp()`,
    orgId,
    key,
  );
  if (!row) return undefined;
  const { hash, outcome, answer } = row;
  return { requestHash: hash, outcome: revived(outcome), answer };
}

function revived(outcome: Outcome): Remembered["outcome"] {
  if ("refusal" in outcome) return outcome;
  const { sandbox, volume } = outcome;
  const done = {
    ...(sandbox && { sandbox: toKeptSandbox(sandbox) }),
    ...(volume && { volume: toKeptVolume(volume) }),
  };
  return { done };
}
