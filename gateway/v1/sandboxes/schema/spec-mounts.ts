import Type, { type Static } from "typebox";
import { nullable, tagged, words } from "../../../validation/schema.ts";
import { HOST_PERMISSIONS, STAT_VIRTUALIZATIONS } from "./mounts.ts";

const SPEC_DISK_FORMATS = ["Qcow2", "Raw", "Vmdk"] as const;

export const MountOptions = Type.Object(
  {
    nodev: Type.Boolean(),
    noexec: Type.Boolean(),
    nosuid: Type.Boolean(),
    readonly: Type.Boolean(),
  },
  { title: "MountOptions" },
);
export type MountOptions = Static<typeof MountOptions>;

const shared = { guest: Type.String(), options: MountOptions };
const sharing = {
  stat_virtualization: words(STAT_VIRTUALIZATIONS),
  host_permissions: words(HOST_PERMISSIONS),
};
const mib = () => nullable(Type.Integer({ format: "int32", minimum: 0 }));

/** Where storage appears, never where it comes from. */
export const SpecMount = tagged(
  "type",
  [
    Type.Object(
      { type: Type.Literal("Bind"), ...shared, ...sharing, quota_mib: mib() },
      { title: "BindMount" },
    ),
    Type.Object({ type: Type.Literal("Named"), ...shared, ...sharing }, { title: "NamedMount" }),
    Type.Object(
      { type: Type.Literal("Tmpfs"), ...shared, size_mib: mib() },
      { title: "TmpfsMount" },
    ),
    Type.Object(
      {
        type: Type.Literal("DiskImage"),
        ...shared,
        format: words(SPEC_DISK_FORMATS),
        fstype: nullable(Type.String()),
      },
      { title: "DiskImageMount" },
    ),
  ],
  { title: "Mount" },
);
export type SpecMount = Static<typeof SpecMount>;
