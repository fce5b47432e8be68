import { setTimeout as sleep } from "node:timers/promises";

const TRIES = 2_000;

/** Returns when the condition holds, like expect.poll, but moves no fake clock. */
export async function comeTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < TRIES; i++) {
    if (await condition()) return;
    await sleep(5);
  }
  throw new Error(`never came true: ${condition}`);
}
