import { setTimeout as sleep } from "node:timers/promises";
import { type Facts, readDatabase } from "./facts.ts";
import { unsettled } from "./invariants.ts";
import type { ChaosSystem } from "./system.ts";
import { age, readDisk } from "./volumes/disk.ts";
import { readVolumes } from "./volumes/facts.ts";

const QUIET_MS = 4_000;
const LOOK_MS = 500;

/**
 * Waits until rows and machines agree and nothing happens any more.
 * @returns the facts as they are then, or when the time is over
 */
export async function settle(system: ChaosSystem, limitMs: number): Promise<Facts> {
  const until = Date.now() + limitMs;
  await age(system.volumesDir);
  let quietSince: number | undefined;
  let before = -1;
  for (;;) {
    const facts = await look(system);
    const calm = facts !== undefined && unsettled(facts).length === 0;
    if (!calm || facts.events.length !== before) quietSince = undefined;
    before = facts?.events.length ?? -1;
    if (calm) quietSince ??= Date.now();
    if (facts && quietSince !== undefined && Date.now() - quietSince >= QUIET_MS) return facts;
    if (Date.now() > until) return facts ?? (await lookAtLast(system));
    await sleep(LOOK_MS);
  }
}

/** Undefined while the database or the engine does not answer. */
async function look(system: ChaosSystem): Promise<Facts | undefined> {
  return lookAtLast(system).catch(() => undefined);
}

async function lookAtLast(system: ChaosSystem): Promise<Facts> {
  const { databaseUrl, engine, starts, host, volumesDir } = system;
  const [rows, machines, volumes, disk] = await Promise.all([
    readDatabase(databaseUrl),
    engine.list(),
    readVolumes(databaseUrl),
    readDisk(volumesDir),
  ]);
  return {
    ...rows,
    machines,
    volumes: { ...volumes, disk },
    starts: await starts(),
    host: (await host.faults?.()) ?? [],
  };
}
