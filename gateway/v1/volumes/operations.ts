import { conflict } from "../../errors.ts";
import { operation } from "../../http/operation.ts";
import { Message } from "../sandboxes/schema/sandbox.ts";
import { exampleHost, exampleVolume } from "./examples.ts";
import {
  CreateVolumeRequest,
  UpdateVolumeRequest,
  Volume,
  VolumeList,
  VolumeParams,
} from "./schema/volume.ts";

const tag = "Volumes";
const hostProtected = conflict("the host volume cannot be deleted");

export const listVolumes = operation({
  id: "listVolumes",
  tag,
  summary: "List volumes",
  description: "All of them at once: the host volume first, then the oldest first.",
  response: VolumeList,
  example: [exampleHost, exampleVolume],
});

export const createVolume = operation({
  id: "createVolume",
  tag,
  summary: "Create a volume",
  description: "Storage that sandboxes mount by its name, and that outlives them.",
  body: {
    schema: CreateVolumeRequest,
    example: { name: "datasets", capacity_gib: 10, labels: { team: "build" } },
  },
  response: Volume,
  example: { ...exampleVolume, used_bytes: null },
  errors: ["volume_already_exists"],
});

export const getHostVolume = operation({
  id: "getHostVolume",
  tag,
  summary: "Read the host volume",
  description:
    "The organization's own, made with it: what binds and copy patches are taken from. It can be neither deleted nor capped.",
  response: Volume,
  example: exampleHost,
  errors: ["org_not_found"],
});

export const getVolume = operation({
  id: "getVolume",
  tag,
  summary: "Read a volume",
  description: "The volume as it is now.",
  params: VolumeParams,
  response: Volume,
  example: exampleVolume,
  errors: ["volume_not_found"],
});

export const updateVolume = operation({
  id: "updateVolume",
  tag,
  summary: "Change a volume",
  description: "Its capacity and its labels; the host volume cannot be capped.",
  params: VolumeParams,
  body: { schema: UpdateVolumeRequest, example: { capacity_gib: null } },
  response: Volume,
  example: { ...exampleVolume, capacity_bytes: null, updated_at: "2026-11-21T09:02:55.001Z" },
  errors: ["volume_not_found"],
  refusals: [hostProtected],
});

export const deleteVolume = operation({
  id: "deleteVolume",
  tag,
  summary: "Delete a volume",
  description: `Once this answers the volume is gone and its name is free; what it held goes away behind it. One that a
sandbox mounts which is starting, running or stopping cannot be deleted.`,
  params: VolumeParams,
  response: Message,
  example: { message: "volume deleted" },
  errors: ["volume_not_found", "volume_in_use"],
  refusals: [hostProtected],
});
