import type { Actor } from "../../runtime/caller.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { startRounds } from "../../runtime/rounds.ts";
import type { SandboxContext } from "./context.ts";
import { destroySandbox } from "./domain/change-sandbox.ts";
import { WRITES_AT_ONCE } from "./store/volume-use.ts";

/** One that could not be destroyed is due still, and is not to be tried in a hurry. */
const AGAIN_MS = 1_000;
/** One may become due sooner where another process has a shorter linger. */
const EVERY_MS = 10_000;
const AT_ONCE = 100;
/** Promises that were given up hold no room any more; only their rows are left. */
const WRITES_EVERY_MS = 60_000;
/** Whoever is over a limit that was raised waits so long for storage that can be written again. */
const JUDGE_EVERY_MS = 10_000;
/** What a new database does slowly until then is only of a moment. */
const ANALYZE_EVERY_MS = 5_000;
const ACTOR: Actor = { kind: "system", code: "ephemeral", label: "Ephemeral sandbox ended" };

/**
 * Destroys ephemeral sandboxes when their linger is over, forgets writes that were given up, sees that a storage limit was
 * raised, and sees to statistics of a new database; any number of processes may do it.
 */
export function startHousekeeping(
  ctx: SandboxContext,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  const works = [
    startRounds(() => expire(ctx, onError), onError),
    startRounds(() => forgetWrites(ctx), onError),
    startRounds(() => judge(ctx), onError),
    startRounds(() => analyze(ctx), onError),
  ];
  return {
    stop: async () => {
      await Promise.all(works.map((work) => work.stop()));
    },
  };
}

async function judge({ store }: SandboxContext): Promise<number> {
  await store.judgeStorage();
  return JUDGE_EVERY_MS;
}

async function analyze({ store }: SandboxContext): Promise<number> {
  await store.analyzeNewTables();
  return ANALYZE_EVERY_MS;
}

// Only behind a full batch there is more.
async function forgetWrites({ store }: SandboxContext): Promise<number> {
  return (await store.giveUpWrites()) < WRITES_AT_ONCE ? WRITES_EVERY_MS : 0;
}

/** @returns how many milliseconds from now there may be more */
async function expire(ctx: SandboxContext, onError: (error: unknown) => void): Promise<number> {
  // One that ends from now on is not due before its linger is over.
  const rest = Math.min(EVERY_MS, Math.max(AGAIN_MS, ctx.lingerSecs * 1_000));
  const ms = await ctx.store.nextExpiry();
  if (ms === null || ms > 0) return Math.min(rest, Math.ceil(ms ?? rest));
  const destroyed = await Promise.all(
    (await ctx.store.listExpired(AT_ONCE)).map((sandbox) =>
      destroy(ctx, sandbox).then(
        () => true,
        (error: unknown) => {
          onError(error);
          return false;
        },
      ),
    ),
  );
  return destroyed.includes(false) ? AGAIN_MS : 0;
}

async function destroy(ctx: SandboxContext, { id, orgId }: { id: string; orgId: string }) {
  try {
    await destroySandbox(ctx, { orgId, actor: ACTOR }, { id });
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof ServiceError && error.reason === "SANDBOX_NOT_FOUND")) throw error;
  }
}
