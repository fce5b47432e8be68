import type { OrchestratorContext } from "../context.ts";
import { Metering } from "./metering.ts";
import { startRemoval } from "./removal.ts";

/** What whoever leads does for volumes; undefined where the engine has none. */
export function keepVolumes({
  store,
  engine: { volumes },
  volumeCalls: calls,
  measurer,
  log,
  limits,
}: OrchestratorContext): { stop(): Promise<void> } | undefined {
  if (!volumes || !measurer) return undefined;
  const removal = startRemoval({ store, volumes, calls, log });
  const metering = new Metering({ store, measurer, log, changedSecs: limits.volumeMeasureSecs });
  return {
    stop: async () => {
      await Promise.all([removal.stop(), metering.stop()]);
    },
  };
}
