import { openLine } from "../../../runtime/postgres/line.ts";
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
 * Hears what changes about keys, on one connection.
 * @returns what ends it, without a `lost`
 */
export function listenForKeys(url: string, ears: KeyEars): () => Promise<void> {
  const options = { proveEveryMs: PROVE_EVERY_MS, silentAfterMs: SILENT_AFTER_MS };
  const line = openLine(
    { url, channels: ["sandgate_keys"], ...options },
    {
      heard: (_, payload) => {
        const change = readChange(payload);
        if (change) return ears.changed(change);
        void line.end();
        ears.lost(new Error(`what was told of keys is not understood: ${payload}`));
      },
      proven: ears.proven,
      lost: ears.lost,
    },
  );
  return line.end;
}

function readChange(payload: string): KeyChange | undefined {
  try {
    const { org_id, api_key_id } = JSON.parse(payload);
    if (typeof org_id === "string" && typeof api_key_id === "string")
      return { orgId: org_id, apiKeyId: api_key_id };
  } catch {}
  return undefined;
}
