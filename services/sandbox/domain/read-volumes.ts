import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { orgNotFound } from "./refusals.ts";
import type { Volume } from "./volume.ts";
import { volumeNotFound } from "./volume-refusals.ts";

export async function getVolume(
  { store }: SandboxContext,
  { orgId }: Caller,
  id: string,
): Promise<Volume> {
  const volume = await store.findVolume(orgId, id);
  if (!volume) throw volumeNotFound();
  return volume;
}

/** Every organization has one from its making on. */
export async function getHostVolume({ store }: SandboxContext, { orgId }: Caller): Promise<Volume> {
  const volume = await store.findHostVolume(orgId);
  if (!volume) throw orgNotFound();
  return volume;
}

/** The host volume first, then the oldest first. */
export function listVolumes({ store }: SandboxContext, { orgId }: Caller): Promise<Volume[]> {
  return store.listVolumes(orgId);
}
