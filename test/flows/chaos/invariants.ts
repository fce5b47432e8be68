import type { Facts } from "./facts.ts";
import { exactlyOnce } from "./invariants/exactly-once.ts";
import { filesMatch } from "./invariants/files.ts";
import { histories } from "./invariants/history.ts";
import { sameAnswers } from "./invariants/idempotency.ts";
import { machinesMatch, startsOnce } from "./invariants/machines.ts";
import { metered, unmetered } from "./invariants/metering.ts";
import { placesMatch } from "./invariants/places.ts";
import { settledRuns } from "./invariants/runs.ts";
import { accrued } from "./invariants/storage.ts";
import { settledVolumes, volumesMatch } from "./invariants/volumes.ts";
import type { Journal } from "./journal.ts";

/** What must be true once all has settled. @returns a sentence for each that is not, with its invariant before it */
export function broken(facts: Facts, journal: Journal): string[] {
  const named = (name: string, faults: readonly string[]) =>
    faults.map((fault) => `${name}: ${fault}`);
  return [
    ...named("strange answer", journal.strange),
    ...named("exactly once", exactlyOnce(facts, journal)),
    ...named("idempotency", sameAnswers(facts, journal)),
    ...named("settled", settledRuns(facts)),
    ...named("history", histories(facts)),
    ...named("machines", machinesMatch(facts)),
    ...named("starts", startsOnce(facts)),
    ...named("places", placesMatch(facts)),
    ...named("metering", [...unmetered(facts), ...metered(facts)]),
    ...named("volumes", [...settledVolumes(facts), ...volumesMatch(facts, journal)]),
    ...named("files", filesMatch(facts, journal)),
    ...named("storage", accrued(facts)),
    ...named("host", facts.host),
  ];
}

/** The part that is waited for. */
export function unsettled(facts: Facts): string[] {
  return [
    ...settledRuns(facts),
    ...machinesMatch(facts),
    ...unmetered(facts),
    ...settledVolumes(facts),
  ];
}
