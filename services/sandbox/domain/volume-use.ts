import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { quotaExceeded } from "./quotas.ts";
import { volumeNotFound } from "./volume-refusals.ts";

/** A write of files, and how many bytes it takes in all. */
export interface VolumeWrite {
  id: string;
  volumeId: string;
  bytes: bigint;
}

/**
 * Promises a write its room for an hour; the same again renews that, more bytes ask for more.
 * @throws ServiceError VOLUME_NOT_FOUND, QUOTA_EXCEEDED
 */
export async function reserveBytes(
  { store }: SandboxContext,
  { orgId }: Caller,
  write: VolumeWrite,
): Promise<void> {
  const refused = await store.reserveBytes(orgId, write);
  if (refused === "no volume") throw volumeNotFound();
  if (refused) throw quotaExceeded(refused);
}

/** The write is over and wrote so much; one that nothing was written down of, or that is over already, changes nothing. */
export function settleWrite(
  { store }: SandboxContext,
  write: Pick<VolumeWrite, "id" | "bytes">,
): Promise<void> {
  return store.settleWrite(write);
}

/** What a volume held when a measurement began. One that began no later than the last one known changes nothing. */
export interface VolumeMeasurement {
  volumeId: string;
  usedBytes: bigint;
  measuredAt: Date;
}

export function reportUse(
  { store }: SandboxContext,
  measured: VolumeMeasurement,
): Promise<boolean> {
  return store.reportVolumeUse(measured);
}

/** Nothing of a deleted volume is left: its row goes. */
export function reportVolumeRemoved({ store }: SandboxContext, id: string): Promise<boolean> {
  return store.reportVolumeRemoved(id);
}
