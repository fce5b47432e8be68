import { startRounds } from "../../runtime/rounds.ts";
import type { Store } from "./store.ts";

const EVERY_MS = 60_000;
/** Between two batches, so that what people ask for comes first. */
const PAUSE_MS = 50;

export interface Retention {
  /** How long audit events are kept; 0: always. */
  eventRetentionDays: number;
}

/** Deletes what has had its time, in small batches; any number of processes may do it. */
export function startHousekeeping(
  store: Pick<Store, "deleteExpiredIdempotency" | "deleteOldEvents">,
  { eventRetentionDays }: Retention,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  const works = [startRounds(rounds(store.deleteExpiredIdempotency), onError)];
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

// Where a batch found nothing there may be more soon; what another process has in hand is not counted.
function rounds(deleteBatch: () => Promise<number>) {
  return async () => ((await deleteBatch()) > 0 ? PAUSE_MS : EVERY_MS);
}
