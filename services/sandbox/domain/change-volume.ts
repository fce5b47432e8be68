import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { type Answered, once } from "./idempotency.ts";
import { HOLDS_COMPUTE } from "./lifecycle.ts";
import { untilRefused } from "./refusals.ts";
import type { Volume } from "./volume.ts";
import {
  aboveLimit,
  MOST_NAMED,
  volumeInUse,
  volumeNotFound,
  volumeProtected,
} from "./volume-refusals.ts";

/** What is undefined stays as it is. */
export interface VolumeChange {
  /** Null: none of its own any more. */
  capacityGib: number | null | undefined;
  /** In place of what there was. */
  labels: Record<string, string> | undefined;
}

export function updateVolume(
  ctx: SandboxContext,
  caller: Caller,
  id: string,
  change: VolumeChange,
): Promise<Answered<Volume>> {
  const { orgId, actor } = caller;
  return once(ctx, caller, { kind: "volume", verb: "update" }, (memory) =>
    untilRefused(
      () => ctx.store.updateVolume(orgId, id, actor, change, memory),
      () => whyNotUpdated(ctx, orgId, id, change.capacityGib ?? null),
    ),
  );
}

async function whyNotUpdated(
  { store }: SandboxContext,
  orgId: string,
  id: string,
  capacityGib: number | null,
) {
  const volume = await store.findVolume(orgId, id);
  if (!volume) return volumeNotFound();
  if (volume.kind === "host" && capacityGib !== null) return volumeProtected("capped");
  return aboveLimit(await store.findStanding(orgId), capacityGib, "capacity.gib");
}

/** The volume is gone for its owner; what it holds goes away behind it. */
export function deleteVolume(
  ctx: SandboxContext,
  caller: Caller,
  id: string,
): Promise<Answered<Volume>> {
  const { orgId, actor } = caller;
  return once(ctx, caller, { kind: "volume", verb: "delete" }, (memory) =>
    untilRefused(
      () => ctx.store.deleteVolume(orgId, id, actor, HOLDS_COMPUTE, memory),
      () => whyNotDeleted(ctx, orgId, id),
    ),
  );
}

async function whyNotDeleted({ store }: SandboxContext, orgId: string, id: string) {
  const volume = await store.findVolume(orgId, id);
  if (!volume) return volumeNotFound();
  if (volume.kind === "host") return volumeProtected("deleted");
  const names = await store.listHolders(id, HOLDS_COMPUTE, MOST_NAMED + 1);
  return names.length > 0 ? volumeInUse(names) : undefined;
}
