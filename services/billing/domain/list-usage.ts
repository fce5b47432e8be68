import type { Caller } from "../../../runtime/caller.ts";
import type { BillingContext } from "../context.ts";
import { type GivenWindow, resolveWindow } from "./window.ts";

/** What one sandbox used on one day: vCPUs and MiB times milliseconds. */
export interface SandboxDay {
  sandboxId: string;
  day: number;
  vcpu: bigint;
  memory: bigint;
  disk: bigint;
  /** Undefined: it does not exist any more. */
  identity: { name: string; slug: string } | undefined;
}

/** What one volume held on one day, in bytes times milliseconds. */
export interface VolumeDay {
  volumeId: string;
  day: number;
  held: bigint;
  /** Undefined: it does not exist any more. */
  identity: VolumeIdentity | undefined;
}

export interface VolumeIdentity {
  /** Null: the host volume. */
  name: string | null;
}

/**
 * By day, then by sandbox.
 * @throws ServiceError (INVALID_REQUEST)
 */
export async function listSandboxUsage(
  ctx: BillingContext,
  { orgId }: Pick<Caller, "orgId">,
  given: GivenWindow,
): Promise<SandboxDay[]> {
  const now = await ctx.store.now();
  const { since, counted } = resolveWindow(given, now);
  return ctx.store.listSandboxDays(orgId, now, { since, until: counted });
}

/**
 * By day, then by volume.
 * @throws ServiceError (INVALID_REQUEST)
 */
export async function listStorageUsage(
  ctx: BillingContext,
  { orgId }: Pick<Caller, "orgId">,
  given: GivenWindow,
): Promise<VolumeDay[]> {
  const now = await ctx.store.now();
  const { since, counted } = resolveWindow(given, now);
  return ctx.store.listVolumeDays(orgId, now, { since, until: counted });
}
