import { startRounds } from "../../runtime/rounds.ts";
import { BATCH } from "./store/retention.ts";
import type { Store } from "./store.ts";

const EVERY_MS = 60_000;
/** Between two batches, so that what people ask for comes first. */
const PAUSE_MS = 50;
/** What a new database does slowly until then is only of a moment. */
const ANALYZE_EVERY_MS = 5_000;

export interface Retention {
  /** How long audit events are kept; 0: always. */
  eventRetentionDays: number;
}

/** Deletes what has had its time, in small batches, and sees to statistics of a new database; any number of processes may do it. */
export function startHousekeeping(
  store: Pick<Store, "deleteExpiredIdempotency" | "deleteOldEvents" | "analyzeNewTables">,
  { eventRetentionDays }: Retention,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  const works = [
    startRounds(rounds(store.deleteExpiredIdempotency), onError),
    startRounds(() => analyze(store), onError),
  ];
  if (eventRetentionDays > 0)
    works.push(
      startRounds(
        rounds(() => store.deleteOldEvents(eventRetentionDays)),
        onError,
      ),
    );
  return {
    stop: async () => {
      await Promise.all(works.map((work) => work.stop()));
    },
  };
}

// Only behind a full batch there is more; what another process has in hand is its own to finish.
function rounds(deleteBatch: () => Promise<number>) {
  return async () => ((await deleteBatch()) < BATCH ? EVERY_MS : PAUSE_MS);
}

async function analyze(store: Pick<Store, "analyzeNewTables">): Promise<number> {
  await store.analyzeNewTables();
  return ANALYZE_EVERY_MS;
}
