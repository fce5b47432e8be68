import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../../support/child.ts";
import { type Blow, CALM_MS, type Victim } from "./schedule.ts";

export interface Targets {
  children: Record<Victim, Child>;
  /** Cuts the engine off from everybody, or ends that. */
  setAvailable(available: boolean): Promise<void>;
  /** Whether clients are served. */
  isReady(): Promise<boolean>;
}

const READY_MS = 15_000;
const LOOK_MS = 100;

/** Deals the blows, one after the other; what is down comes back behind them. @returns when all of it is up */
export async function deal(
  blows: readonly Blow[],
  targets: Targets,
  onBlow: (blow: Blow) => void,
): Promise<void> {
  const recovering = new Map<Victim, Promise<void>>();
  for (const blow of blows) {
    // On a slow machine too something is to get done now and then.
    if (blow.afterMs >= CALM_MS) await untilReady(targets);
    await sleep(blow.afterMs);
    // One at a time each, else a restart would undo the next blow.
    await recovering.get(blow.victim);
    const { back } = await strike(blow, targets);
    recovering.set(blow.victim, back);
    onBlow(blow);
  }
  await Promise.all(recovering.values());
}

async function untilReady({ isReady }: Targets): Promise<void> {
  const until = Date.now() + READY_MS;
  while (Date.now() < until && !(await isReady())) await sleep(LOOK_MS);
}

/** @returns once it is struck; `back` settles when it is up again */
async function strike(blow: Blow, targets: Targets): Promise<{ back: Promise<void> }> {
  const child = targets.children[blow.victim];
  const back = (act: () => unknown) => ({
    back: sleep(blow.forMs).then(async () => void (await act())),
  });
  // A host that is down or just comes up is cut off from nobody.
  const setAvailable = (to: boolean) => targets.setAvailable(to).catch(() => undefined);
  switch (blow.kind) {
    case "kill":
      await child.kill();
      return back(() => child.start());
    case "freeze":
      child.signal("SIGSTOP");
      return back(() => child.signal("SIGCONT"));
    case "cut":
      await setAvailable(false);
      return back(() => setAvailable(true));
  }
}
