import { startRounds } from "../../../runtime/rounds.ts";
import { seldom } from "../../../runtime/seldom.ts";
import type { Log } from "../context.ts";
import type { VolumeStore } from "../engines/volume-store.ts";
import type { Store } from "../store.ts";
import { Tasks } from "../tasks.ts";
import type { VolumeCalls } from "../volume-calls.ts";

const ROUND_MS = 2_000;
/** One takes a long time where it holds many files, and no longer for others beside it. */
const MOST = 4;

export interface RemovalOptions {
  store: Pick<Store, "listDeletedVolumes">;
  volumes: Pick<VolumeStore, "remove">;
  calls: Pick<VolumeCalls, "removed">;
  log: Log;
  roundMs?: number;
}

/**
 * Removes what deleted volumes held, and says so. Level-triggered: the rows of deleted volumes stay until it is said, so
 * what was begun before a crash is done again.
 */
export function startRemoval(options: RemovalOptions): { stop(): Promise<void> } {
  const { store, volumes, calls, log, roundMs = ROUND_MS } = options;
  const failed = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "could not remove what a deleted volume held; trying again"),
  );
  const tasks = new Tasks(
    () => undefined,
    (_kind, _volumeId, error) => failed(error),
  );
  let underWay = 0;
  const round = async () => {
    const busy = tasks.busy("remove");
    const found = underWay < MOST ? await store.listDeletedVolumes(MOST - underWay, busy) : [];
    for (const volume of found) {
      tasks.begin("remove", volume.volumeId, async (signal) => {
        underWay += 1;
        try {
          await volumes.remove(volume, signal);
          await calls.removed(volume.volumeId);
          return "done";
        } finally {
          underWay -= 1;
        }
      });
    }
    return roundMs;
  };
  const complain = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "could not look for deleted volumes"),
  );
  const rounds = startRounds(round, complain);
  return {
    stop: async () => {
      await rounds.stop();
      await tasks.stop();
    },
  };
}
