import type { Actor } from "../../runtime/caller.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { startRounds } from "../../runtime/rounds.ts";
import type { SandboxContext } from "./context.ts";
import { destroySandbox } from "./domain/change-sandbox.ts";

/** A sandbox may end and be due within this; what is due sooner has a timer of its own. */
const EVERY_MS = 1_000;
const AT_ONCE = 100;
const ACTOR: Actor = { kind: "system", code: "ephemeral", label: "Ephemeral sandbox ended" };

/** Destroys ephemeral sandboxes when their linger is over; any number of processes may do it. */
export function startHousekeeping(
  ctx: SandboxContext,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  return startRounds(() => expire(ctx, onError), onError);
}

/** @returns how many milliseconds from now there may be more */
async function expire(ctx: SandboxContext, onError: (error: unknown) => void): Promise<number> {
  const expired = await ctx.store.listExpired(AT_ONCE);
  const destroyed = await Promise.all(
    expired.map((sandbox) =>
      destroy(ctx, sandbox).then(
        () => true,
        (error: unknown) => {
          onError(error);
          return false;
        },
      ),
    ),
  );
  // One that could not be destroyed is due still, and is not to be tried in a hurry.
  if (destroyed.includes(false)) return EVERY_MS;
  const ms = await ctx.store.nextExpiry();
  return Math.min(EVERY_MS, Math.max(0, Math.ceil(ms ?? EVERY_MS)));
}

async function destroy(ctx: SandboxContext, { id, orgId }: { id: string; orgId: string }) {
  try {
    await destroySandbox(ctx, { orgId, actor: ACTOR }, { id });
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof ServiceError && error.reason === "SANDBOX_NOT_FOUND")) throw error;
  }
}
