import Type, { type Static } from "typebox";
import { asRecord, type RuleFault } from "../../../validation/rule.ts";
import { int32, optional, strict, tagged, text, words } from "../../../validation/schema.ts";
import { canonicalPath, hostVolumePath, machinePathFault, mountPoint } from "./paths.ts";

export const STAT_VIRTUALIZATIONS = ["strict", "relaxed", "off"] as const;
export const HOST_PERMISSIONS = ["private", "mirror"] as const;
const DISK_FORMATS = ["qcow2", "raw", "vmdk"] as const;

const flag = (description: string) => optional(Type.Boolean(), { description, default: false });

export const MountOptionsInput = strict(
  {
    nodev: flag("Ignore device files."),
    noexec: flag("Refuse to execute files."),
    nosuid: flag("Ignore set-user-id and set-group-id bits."),
    readonly: flag("Refuse writes."),
  },
  { title: "MountOptionsInput" },
);

const shared = () => ({ guest: mountPoint(), options: optional(MountOptionsInput) });

const sharing = () => ({
  stat_virtualization: optional(words(STAT_VIRTUALIZATIONS), {
    description: "How file attributes are virtualized.",
    default: "strict",
  }),
  host_permissions: optional(words(HOST_PERMISSIONS), {
    description: "Whether changes of permissions reach the volume.",
    default: "private",
  }),
});

const BindMountInput = strict(
  {
    type: Type.Literal("bind"),
    host: hostVolumePath(),
    ...shared(),
    ...sharing(),
    quota_mib: optional(int32(0), { description: "Most that may be written, in MiB." }),
  },
  { title: "BindMountInput", description: "A path of the host volume.", rule: mirrorFaults },
);

const NamedMountInput = strict(
  {
    type: Type.Literal("named"),
    name: Type.String({
      description: "An existing volume.",
      pattern: "^(?=.{1,63}$)[a-z0-9]+(-[a-z0-9]+)*$",
      hint: "must be the name of a volume",
    }),
    ...shared(),
    ...sharing(),
  },
  { title: "NamedMountInput", description: "A volume.", rule: mirrorFaults },
);

const TmpfsMountInput = strict(
  {
    type: Type.Literal("tmpfs"),
    ...shared(),
    size_mib: optional(int32(0), { description: "Most that it holds, in MiB." }),
  },
  { title: "TmpfsMountInput", description: "Memory that a stop empties." },
);

const DiskImageMountInput = strict(
  {
    type: Type.Literal("disk_image"),
    host: hostVolumePath(),
    ...shared(),
    format: words(DISK_FORMATS),
    fstype: optional(text({ minLength: 1 }), { description: "Null: detected." }),
  },
  { title: "DiskImageMountInput", description: "A disk image in the host volume." },
);

export const MountInput = tagged(
  "type",
  [BindMountInput, NamedMountInput, TmpfsMountInput, DiskImageMountInput],
  { title: "MountInput", description: "Storage at a path of the machine." },
);
export type MountInput = Static<typeof MountInput>;
export type MountOptionsInput = Static<typeof MountOptionsInput>;

const MAX_MOUNTS = 256;

export const MountsInput = Type.Array(MountInput, {
  maxItems: MAX_MOUNTS,
  hint: `must have at most ${MAX_MOUNTS} mounts`,
  description: "Mount points are unique once canonical.",
  rule: repeatedMountPoints,
});

function mirrorFaults(value: unknown): RuleFault[] {
  const mount = asRecord(value);
  const refused = mount?.stat_virtualization === "off" && mount.host_permissions === "mirror";
  return refused
    ? [{ at: ["host_permissions"], message: "must not be mirror where stat_virtualization is off" }]
    : [];
}

function repeatedMountPoints(value: unknown): RuleFault[] {
  const seen = new Map<string, number>();
  return (Array.isArray(value) ? value : []).flatMap((mount, i) => {
    const guest = asRecord(mount)?.guest;
    if (typeof guest !== "string" || machinePathFault(guest)) return [];
    const path = canonicalPath(guest);
    const first = seen.get(path);
    if (first === undefined) seen.set(path, i);
    return first === undefined
      ? []
      : [{ at: [i, "guest"], message: `is the mount point of mounts[${first}] already` }];
  });
}
