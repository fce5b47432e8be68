import { FileFault } from "../../../../services/orchestrator/engines/volume-store.ts";
import { type Act, PATHS } from "./acts.ts";
import type { World } from "./world.ts";

const WIDTH = 8;

export interface Outcome {
  /** What got through; the attack ends with the first. */
  breaches: string[];
  /** By act: how often it came to something, and how often it was refused. */
  done: Record<string, { done: number; refused: number }>;
}

/** Asks for this and that, many at once, while the volume is changed under it. */
export async function attack(
  world: World,
  acts: Record<string, Act>,
  rounds: number,
  paths: readonly string[] = PATHS,
): Promise<Outcome> {
  const outcome: Outcome = { breaches: [], done: {} };
  let left = rounds;
  const client = async () => {
    while (left-- > 0 && outcome.breaches.length === 0) {
      const name = any(Object.keys(acts));
      const tally = tallyOf(outcome, name);
      const [path, other] = [any(paths), any(paths)];
      const breach = await attempt(acts[name], path, other, tally);
      const harm = left % 16 === 0 ? world.harm() : [];
      for (const what of [breach, ...harm])
        if (what) outcome.breaches.push(`${name} ${path} ${other}: ${what}`);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, client));
  return outcome;
}

function tallyOf({ done }: Outcome, name: string) {
  done[name] ??= { done: 0, refused: 0 };
  return done[name];
}

async function attempt(
  act: Act | undefined,
  path: string,
  other: string,
  tally: { done: number; refused: number },
): Promise<string | undefined> {
  try {
    const breach = await act?.(path, other);
    tally.done += 1;
    return breach;
  } catch (error) {
    // It may well not work out: only why is of interest.
    if (!(error instanceof FileFault)) return `${error}`;
    tally.refused += 1;
    return undefined;
  }
}

function any<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T;
}
