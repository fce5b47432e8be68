import type { FieldFault } from "../../../runtime/errors.ts";
import { refusalOf } from "./refusal-sentences.ts";
import type { Mount, Patch, SandboxSpec } from "./spec.ts";

/** A part of a spec that an engine may or may not honour, and where the spec asks for it. */
export interface Requirement {
  feature: string;
  /** Public path of the field, such as `mounts[0]`. */
  field: string;
}

/** Everything that engines may claim in `Engine.features()`. */
export const FEATURES = [
  "init",
  "lifecycle.idle_timeout_secs",
  "mounts.bind",
  "mounts.bind.quota_mib",
  "mounts.disk_image",
  "mounts.disk_image.fstype",
  "mounts.disk_image.qcow2",
  "mounts.disk_image.vmdk",
  "mounts.host_permissions",
  "mounts.named",
  "mounts.options",
  "mounts.stat_virtualization",
  "mounts.tmpfs",
  "network",
  "network.max_connections",
  "network.policy",
  "network.policy.domains",
  "network.secrets",
  "network.strict",
  "patches",
  "patches.copy",
  "resources.disk_size_mib",
  "rlimits.as",
  "runtime.log_level",
  "runtime.scripts",
] as const;

/** The file systems that every engine with `mounts.disk_image` mounts; others take `mounts.disk_image.fstype`. */
export const USUAL_FSTYPES: readonly string[] = ["ext2", "ext3", "ext4", "squashfs", "xfs"];

export type Feature = (typeof FEATURES)[number];

/** What this spec, beside its patches, asks of an engine beyond what every engine does. Pure. */
export function requirements(spec: SandboxSpec): Requirement[] {
  const needs: [boolean, Feature, string][] = [
    [spec.init !== null, "init", "init"],
    [
      (spec.lifecycle.idleTimeoutSecs ?? 0) > 0,
      "lifecycle.idle_timeout_secs",
      "lifecycle.idle_timeout_secs",
    ],
    // The default policy is a promise too: it is kept, or there is no network here.
    [spec.network.enabled, "network", "network"],
    [spec.network.maxConnections !== null, "network.max_connections", "network.max_connections"],
    [spec.network.policy !== null, "network.policy", "network.policy"],
    [(spec.network.secrets?.entries.length ?? 0) > 0, "network.secrets", "network.secrets"],
    [spec.network.strict, "network.strict", "network.strict"],
    [spec.resources.diskSizeMib !== null, "resources.disk_size_mib", "resources.disk_size_mib"],
    [spec.runtime.logLevel !== null, "runtime.log_level", "runtime.log_level"],
    [Object.keys(spec.runtime.scripts).length > 0, "runtime.scripts", "runtime.scripts"],
  ];
  const plain: Requirement[] = needs
    .filter(([asked]) => asked)
    .map(([, feature, field]) => ({ feature, field }));
  const rules = spec.network.policy?.rules ?? [];
  for (const [i, { destination }] of rules.entries())
    if (destination.kind === "domain" || destination.kind === "domain_suffix")
      plain.push({
        feature: "network.policy.domains",
        field: `network.policy.rules[${i}].destination`,
      });
  const as = spec.rlimits.findIndex(({ resource }) => resource === "as");
  if (as >= 0) plain.push({ feature: "rlimits.as", field: `rlimits[${as}]` });
  // It forces nosuid and nodev wherever something is mounted.
  if (spec.securityProfile === "restricted" && spec.mounts.some(isShared))
    plain.push({ feature: "mounts.options", field: "security_profile" });
  return [...plain, ...spec.mounts.flatMap((mount, i) => mountRequirements(mount, `mounts[${i}]`))];
}

/** Of a volume, or a part of one. */
function isShared(mount: Mount): mount is Extract<Mount, { type: "bind" | "named" }> {
  return mount.type === "bind" || mount.type === "named";
}

function mountRequirements(mount: Mount, field: string): Requirement[] {
  const found: Requirement[] = [{ feature: `mounts.${mount.type}`, field }];
  if (mount.type === "disk_image") return [...found, ...imageRequirements(mount, field)];
  if (!isShared(mount)) return found;
  const { noexec, nosuid, nodev } = mount.options;
  if (noexec || nosuid || nodev)
    found.push({ feature: "mounts.options", field: `${field}.options` });
  if (mount.statVirtualization !== "strict")
    found.push({ feature: "mounts.stat_virtualization", field: `${field}.stat_virtualization` });
  if (mount.hostPermissions !== "private")
    found.push({ feature: "mounts.host_permissions", field: `${field}.host_permissions` });
  if (mount.type === "bind" && mount.quotaMib !== null)
    found.push({ feature: "mounts.bind.quota_mib", field: `${field}.quota_mib` });
  return found;
}

function imageRequirements(
  { format, fstype }: Extract<Mount, { type: "disk_image" }>,
  field: string,
): Requirement[] {
  const found: Requirement[] = [];
  if (format !== "raw")
    found.push({ feature: `mounts.disk_image.${format}`, field: `${field}.format` });
  if (fstype !== null && !USUAL_FSTYPES.includes(fstype))
    found.push({ feature: "mounts.disk_image.fstype", field: `${field}.fstype` });
  return found;
}

/** What patches ask of an engine. Pure. */
export function patchRequirements(patches: readonly Patch[]): Requirement[] {
  const copy = patches.findIndex(({ kind }) => kind === "copy_file" || kind === "copy_dir");
  const needs: Requirement[] = patches.length > 0 ? [{ feature: "patches", field: "patches" }] : [];
  if (copy >= 0) needs.push({ feature: "patches.copy", field: `patches[${copy}]` });
  return needs;
}

/** The faults of a spec on an engine with these features; empty: it can run there. Pure. */
export function unsupported(
  needs: readonly Requirement[],
  features: readonly string[],
): FieldFault[] {
  return needs
    .filter(({ feature }) => !features.includes(feature))
    .map(({ feature, field }) => ({ field, message: refusalOf(feature) }));
}
