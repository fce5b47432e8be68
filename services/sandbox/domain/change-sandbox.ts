import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { takenField } from "../store.ts";
import { type Answered, type Memory, once } from "./idempotency.ts";
import type { Action } from "./lifecycle.ts";
import { nameTaken, notFound, unreachable, whyRefused } from "./refusals.ts";
import type { Sandbox, SandboxKey } from "./sandbox.ts";

const MOST_TRIES = 10;

type Owner = Pick<Caller, "orgId" | "actor" | "idempotency">;

/** Admits a start; the answer does not wait for the machine. */
export function startSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return once(ctx, caller, "start", (memory) => admit(ctx, caller, key, "start", memory));
}

/** Admits a stop. */
export function stopSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return once(ctx, caller, "stop", (memory) => admit(ctx, caller, key, "stop", memory));
}

/** The sandbox is gone for its owner; what it holds goes away behind it. */
export function destroySandbox(ctx: SandboxContext, owner: Owner, key: SandboxKey) {
  return once(ctx, owner, "destroy", (memory) => admit(ctx, owner, key, "destroy", memory));
}

// What stands in the way is read after the refusal, so it may be gone by then: then once more.
async function admit(
  ctx: SandboxContext,
  owner: Owner,
  key: SandboxKey,
  action: Action,
  memory?: Memory,
): Promise<Sandbox> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const sandbox = await ctx.store[action](owner.orgId, key, owner.actor, memory);
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
export function renameSandbox(
  ctx: SandboxContext,
  caller: Caller,
  key: SandboxKey,
  to: { name: string | null; slug: string | null },
): Promise<Answered> {
  return once(ctx, caller, "rename", (memory) => rename(ctx, caller, key, to, memory));
}

async function rename(
  ctx: SandboxContext,
  { orgId, actor }: Caller,
  key: SandboxKey,
  to: { name: string | null; slug: string | null },
  memory?: Memory,
): Promise<Sandbox> {
  try {
    const renamed = await ctx.store.rename(orgId, key, actor, to, memory);
    if (renamed) return renamed;
  } catch (error) {
    const field = takenField(error);
    if (!field) throw error;
    throw await nameTaken(ctx, orgId, field, to.name ?? "");
  }
  throw notFound();
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
