import { fault } from "./faults.ts";
import { moveTo } from "./move-to.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { at } from "./place.ts";
import { resolve } from "./resolve.ts";

export async function rename(volume: OpenVolume, from: string, to: string): Promise<void> {
  const names = parsePath(to);
  await using origin = await resolve(volume, parsePath(from), from, { links: "stay" });
  if (origin.name === undefined) throw fault("conflict", from, "is the volume's root");
  if (!origin.found) throw fault("missing", from, "does not exist");
  const options = { links: "stay", make: true, notBelow: origin.names } as const;
  await using target = await resolve(volume, names, to, options);
  await moveTo(at(origin.parent, origin.name), target, to);
}
