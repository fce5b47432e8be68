import type { BillingContext } from "../context.ts";

/** Runs of one statement: a fraction of a second. */
const AT_ONCE = 2_000;
/** What is not rolled up yet is counted run by run, so nobody waits for it. */
const EVERY_MS = 5_000;

/** Rolls up closed runs. @returns milliseconds until there may be more; 0: there are */
export async function rollUp(ctx: BillingContext): Promise<number> {
  const taken = await ctx.store.rollUp(AT_ONCE);
  return taken < AT_ONCE ? EVERY_MS : 0;
}
