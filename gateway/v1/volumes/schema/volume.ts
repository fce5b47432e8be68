import Type, { type Static } from "typebox";
import {
  int32,
  int64,
  mapOf,
  nullable,
  optional,
  text,
  words,
} from "../../../validation/schema.ts";
import { labelFaults } from "../../sandboxes/schema/keys.ts";

export const KINDS = ["host", "managed"] as const;
export const STATUSES = ["active", "deleting"] as const;

const time = (description: string) => Type.String({ format: "date-time", description });

export const Volume = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    kind: words(KINDS, {
      description: "`host`: the organization's own, which binds and copy patches are taken from.",
    }),
    name: nullable(Type.String(), {
      description: "Unique in the organization; null for the host volume.",
    }),
    status: words(STATUSES),
    storage: words(["block"]),
    capacity_bytes: nullable(int64(0), {
      description: "How much it may hold; null: as much as the organization may.",
    }),
    used_bytes: nullable(int64(0), {
      description: "What it held when it was last measured; null: it was not measured yet.",
    }),
    labels: mapOf(Type.String()),
    created_at: time("When it was made."),
    updated_at: time("When its capacity or its labels were last changed."),
  },
  { title: "Volume" },
);
export type Volume = Static<typeof Volume>;

export const VolumeList = Type.Array(Volume, {
  title: "VolumeList",
  description: "The host volume first, then the oldest first.",
});

const LABELS =
  "At most 64, keys to 128 bytes, values to 1024; the prefixes `sandbox.`, `microsandbox.` and `service.` are reserved.";
// What is more could not be said in bytes: they are exact up to 2^53 - 1.
const MOST_GIB = 2 ** 23 - 1;
const CAPACITY = "Most that it may hold, in GiB; at most what the organization may store in all.";

export const CreateVolumeRequest = Type.Object(
  {
    name: Type.String({
      description: "Unique in the organization.",
      pattern: "^(?=.{1,63}$)[a-z0-9]+(-[a-z0-9]+)*$",
      hint: "must be 1 to 63 of a-z, 0-9 and single inner hyphens",
    }),
    capacity_gib: optional(int32(1, { maximum: MOST_GIB }), {
      description: CAPACITY,
      default: null,
    }),
    storage: optional(words(["block"]), { default: "block" }),
    labels: optional(mapOf(text(), { rule: labelFaults }), { description: LABELS, default: {} }),
  },
  { title: "CreateVolumeRequest" },
);
export type CreateVolumeRequest = Static<typeof CreateVolumeRequest>;

export const UpdateVolumeRequest = Type.Object(
  {
    capacity_gib: optional(int32(1, { maximum: MOST_GIB }), {
      description: `${CAPACITY} Absent: unchanged; null: no capacity of its own any more.`,
    }),
    labels: optional(mapOf(text(), { rule: labelFaults }), {
      description: `In place of those that there are; null or absent: unchanged. ${LABELS}`,
    }),
  },
  { title: "UpdateVolumeRequest" },
);
export type UpdateVolumeRequest = Static<typeof UpdateVolumeRequest>;

export const VolumeParams = Type.Object({
  id: Type.String({
    format: "uuid",
    pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    hint: "must be a UUID",
  }),
});
export type VolumeParams = Static<typeof VolumeParams>;
