import { v7 as uuidv7 } from "uuid";
import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { isVolumeNameTaken } from "../store.ts";
import { type Answered, type Memory, once } from "./idempotency.ts";
import { untilRefused } from "./refusals.ts";
import type { Volume } from "./volume.ts";
import { aboveLimit, volumeNameTaken } from "./volume-refusals.ts";

export interface CreateVolume {
  name: string;
  /** Null: none of its own. */
  capacityGib: number | null;
  labels: Record<string, string>;
}

/** Makes a volume; it holds nothing, and takes no room until something is put into it. */
export function createVolume(
  ctx: SandboxContext,
  caller: Caller,
  input: CreateVolume,
): Promise<Answered<Volume>> {
  return once(ctx, caller, { kind: "volume", verb: "create" }, (memory) =>
    make(ctx, caller, input, memory),
  );
}

function make(
  { store }: SandboxContext,
  { orgId, actor }: Caller,
  input: CreateVolume,
  memory?: Memory,
): Promise<Volume> {
  const attempt = () =>
    store.createVolume({ id: uuidv7(), orgId, ...input }, actor, memory).catch((error: unknown) => {
      throw isVolumeNameTaken(error) ? volumeNameTaken() : error;
    });
  return untilRefused(attempt, async () =>
    aboveLimit(await store.findStanding(orgId), input.capacityGib, "capacity_gib"),
  );
}
