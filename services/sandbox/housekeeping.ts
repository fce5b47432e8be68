import type { Actor } from "../../runtime/caller.ts";
import { ServiceError } from "../../runtime/errors.ts";
import type { SandboxContext } from "./context.ts";
import { destroySandbox } from "./domain/change-sandbox.ts";

const EVERY_MS = 1_000;
const AT_ONCE = 100;
const ACTOR: Actor = { kind: "system", code: "ephemeral", label: "Ephemeral sandbox ended" };

/** Destroys ephemeral sandboxes whose linger is over; any number of processes may do it. */
export function startHousekeeping(
  ctx: SandboxContext,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(() => expire(ctx)).catch(onError);
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

async function expire(ctx: SandboxContext): Promise<void> {
  for (const { id, orgId } of await ctx.store.listExpired(AT_ONCE)) {
    try {
      await destroySandbox(ctx, { orgId, actor: ACTOR }, { id });
    } catch (error) {
      // Somebody else was faster.
      if (!(error instanceof ServiceError && error.reason === "SANDBOX_NOT_FOUND")) throw error;
    }
  }
}
