import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { takenField } from "../store.ts";
import { type Answered, type Memory, once, type Verb } from "./idempotency.ts";
import type { Action } from "./lifecycle.ts";
import { nameTaken, notFound, untilRefused, whyRefused } from "./refusals.ts";
import type { Sandbox, SandboxKey } from "./sandbox.ts";

type Owner = Pick<Caller, "orgId" | "actor" | "idempotency">;

/** Admits a start; the answer does not wait for the machine. */
export function startSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return once(ctx, caller, verb("start"), (memory) => admit(ctx, caller, key, "start", memory));
}

/** Admits a stop. */
export function stopSandbox(ctx: SandboxContext, caller: Caller, key: SandboxKey) {
  return once(ctx, caller, verb("stop"), (memory) => admit(ctx, caller, key, "stop", memory));
}

/** The sandbox is gone for its owner; what it holds goes away behind it. */
export function destroySandbox(ctx: SandboxContext, owner: Owner, key: SandboxKey) {
  return once(ctx, owner, verb("destroy"), (memory) => admit(ctx, owner, key, "destroy", memory));
}

function verb(name: string): Verb<"sandbox"> {
  return { kind: "sandbox", verb: name };
}

async function admit(
  ctx: SandboxContext,
  owner: Owner,
  key: SandboxKey,
  action: Action,
  memory?: Memory,
): Promise<Sandbox> {
  const sandbox = await untilRefused(
    () => ctx.store[action](owner.orgId, key, owner.actor, memory),
    () => whyRefused(ctx, owner.orgId, key, action),
  );
  announce(ctx, sandbox, action === "destroy");
  return sandbox;
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
  return once(ctx, caller, verb("rename"), (memory) => rename(ctx, caller, key, to, memory));
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
