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
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= expire(ctx, onError)
      .catch(onError)
      .finally(() => {
        running = undefined;
      });
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

async function expire(ctx: SandboxContext, onError: (error: unknown) => void): Promise<void> {
  const expired = await ctx.store.listExpired(AT_ONCE);
  await Promise.all(expired.map((sandbox) => destroy(ctx, sandbox).catch(onError)));
}

async function destroy(ctx: SandboxContext, { id, orgId }: { id: string; orgId: string }) {
  try {
    await destroySandbox(ctx, { orgId, actor: ACTOR }, { id });
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof ServiceError && error.reason === "SANDBOX_NOT_FOUND")) throw error;
  }
}
