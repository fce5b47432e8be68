import type { Actor, Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { takenField } from "../store.ts";
import type { Action } from "./lifecycle.ts";
import { nameTaken, notFound, unreachable, whyRefused } from "./refusals.ts";
import type { Sandbox, SandboxKey } from "./sandbox.ts";

const MOST_TRIES = 10;

type Owner = { orgId: string; actor: Actor };

/** Admits a start; the answer does not wait for the machine. */
export function startSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return admit(ctx, caller, key, "start");
}

/** Admits a stop. */
export function stopSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return admit(ctx, caller, key, "stop");
}

/** The sandbox is gone for its owner; what it holds goes away behind it. */
export function destroySandbox(ctx: SandboxContext, owner: Owner, key: SandboxKey) {
  return admit(ctx, owner, key, "destroy");
}

// What stands in the way is read after the refusal, so it may be gone by then: then once more.
async function admit(
  ctx: SandboxContext,
  owner: Owner,
  key: SandboxKey,
  action: Action,
): Promise<Sandbox> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const sandbox = await ctx.store[action](owner.orgId, key, owner.actor);
    if (sandbox) {
      announce(ctx, sandbox, action === "destroy");
      return sandbox;
    }
    const refused = await whyRefused(ctx, owner.orgId, key, action);
    if (refused) throw refused;
  }
  throw unreachable();
}

function announce(ctx: SandboxContext, sandbox: Sandbox, destroyed: boolean): void {
  const { id: sandboxId, status, generation } = sandbox;
  ctx.changes.publish({ sandboxId, status, generation, destroyed });
  ctx.hint();
}

/** Renames; null leaves unchanged. Allowed in every state. */
export async function renameSandbox(
  ctx: SandboxContext,
  caller: Caller,
  key: SandboxKey,
  to: { name: string | null; slug: string | null },
): Promise<Sandbox> {
  try {
    const renamed = await ctx.store.rename(caller.orgId, key, caller.actor, to);
    return renamed ?? (await getSandbox(ctx, caller, key));
  } catch (error) {
    const field = takenField(error);
    if (!field) throw error;
    throw await nameTaken(ctx, caller.orgId, field, to.name ?? "");
  }
}

export async function getSandbox(
  ctx: SandboxContext,
  caller: Caller,
  key: SandboxKey,
): Promise<Sandbox> {
  const sandbox = await ctx.store.find(caller.orgId, key);
  if (!sandbox) throw notFound();
  return sandbox;
}
