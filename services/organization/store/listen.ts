import { randomBytes } from "node:crypto";
import pg from "pg";
import type { KeyChange } from "../domain/key.ts";

/** How often the connection proves itself, and how long a proof may take before it counts as lost. */
const PROVE_EVERY_MS = 250;
const SILENT_AFTER_MS = 2_000;

export interface KeyEars {
  changed(change: KeyChange): void;
  /** Every change that was committed before `at` (as performance.now has it) has been told by now. */
  proven(at: number): void;
  /** Once, and nothing after it. */
  lost(error: unknown): void;
}

/**
 * Hears what changes about keys, on one connection. Its proof is a notification to itself: PostgreSQL delivers them in
 * the order of their commits, so when it arrives everything that was committed before it was sent has arrived too. A
 * mere query would not do, for a sender is seen as committed a moment before it wakes the listeners.
 * @returns what ends it, without a `lost`
 */
export function listenForKeys(url: string, ears: KeyEars): () => Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: SILENT_AFTER_MS,
  });
  const proofs = `sandgate_proof_${randomBytes(8).toString("hex")}`;
  let timer: NodeJS.Timeout | undefined;
  let over = false;

  const end = async () => {
    over = true;
    clearTimeout(timer);
    await client.end().catch(() => undefined);
  };
  const lose = (error: unknown) => {
    if (over) return;
    void end();
    ears.lost(error);
  };
  let heard = () => {};
  const prove = () => {
    const at = performance.now();
    timer = setTimeout(() => lose(new Error("no notification arrives")), SILENT_AFTER_MS);
    heard = () => {
      clearTimeout(timer);
      timer = setTimeout(prove, PROVE_EVERY_MS);
      ears.proven(at);
    };
    client.query(`NOTIFY ${proofs}`).catch(lose);
  };

  client.on("error", lose);
  client.on("end", () => lose(new Error("the connection ended")));
  client.on("notification", ({ channel, payload }) => {
    if (over) return;
    if (channel === proofs) return heard();
    const change = readChange(payload);
    if (change) ears.changed(change);
    else lose(new Error(`what was told of keys is not understood: ${payload}`));
  });
  // A proof is nothing that has to survive a crash, so that it waits for no disk.
  const begin = `LISTEN sandgate_keys; LISTEN ${proofs}; SET synchronous_commit = off`;
  client
    .connect()
    .then(() => client.query(begin))
    .then(() => over || prove())
    .catch(lose);
  return end;
}

function readChange(payload: string | undefined): KeyChange | undefined {
  try {
    const { org_id, api_key_id } = JSON.parse(payload ?? "");
    if (typeof org_id === "string" && typeof api_key_id === "string")
      return { orgId: org_id, apiKeyId: api_key_id };
  } catch {}
  return undefined;
}
