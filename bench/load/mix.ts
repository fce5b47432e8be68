import type { Operation } from "./operations.ts";
import * as sandboxes from "./sandboxes.ts";
import * as volumes from "./volumes.ts";
import type { World } from "./world.ts";

const read =
  (path: string): Operation =>
  ({ caller }) =>
    caller.call({ method: "GET", path });

/** Every kind of operation, by the name that is reported. */
export const OPERATIONS = {
  "read by id": sandboxes.readById,
  "read by name": sandboxes.readByName,
  list: sandboxes.list,
  create: sandboxes.create,
  "create, start, wait": sandboxes.createAndWait,
  "start, wait": sandboxes.start,
  stop: sandboxes.stop,
  rename: sandboxes.rename,
  destroy: sandboxes.destroy,
  "follow logs": sandboxes.followLogs,
  "create volume": volumes.createVolume,
  "delete volume": volumes.deleteVolume,
  "list volumes": volumes.listVolumes,
  "put file": volumes.putFile,
  "get file": volumes.getFile,
  "stat file": volumes.statFile,
  "list files": volumes.listFiles,
  "remove file": volumes.removeFile,
  events: read("/v1/events?limit=20"),
  usage: read("/v1/billing/usage"),
  quotas: read("/v1/quotas"),
} as const satisfies Record<string, Operation>;
export type Kind = keyof typeof OPERATIONS;

/** How many there are at rest; above it one is deleted, below it one is made. */
const SANDBOXES = 80;
const VOLUMES = 12;

const WEIGHTS = {
  "read by id": 30,
  "read by name": 15,
  list: 8,
  "sandbox made or destroyed": 12,
  "start, wait": 6,
  stop: 6,
  rename: 3,
  "follow logs": 1,
  "volume made or deleted": 2,
  "list volumes": 1,
  "put file": 3,
  "get file": 4,
  "stat file": 2,
  "list files": 1,
  "remove file": 1,
  events: 2,
  usage: 1,
  quotas: 1,
} as const;

/** What is done next. Deletes keep pace with creates. */
export function nextKind({ random, sandboxes: made, volumes: kept }: World): Kind {
  const kind = random.weighted(WEIGHTS);
  switch (kind) {
    case "sandbox made or destroyed":
      if (made.size > SANDBOXES) return "destroy";
      return random.chance(0.5) ? "create" : "create, start, wait";
    case "volume made or deleted":
      return kept.size > VOLUMES ? "delete volume" : "create volume";
    default:
      return kind;
  }
}
