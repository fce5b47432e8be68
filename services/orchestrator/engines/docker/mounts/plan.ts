import { posix } from "node:path";
import { type Allocation, EngineFailure, type EngineSpec } from "../../engine.ts";
import { FSTYPES, isFstype } from "./file-systems.ts";

/** A mount that this engine makes itself, while the machine is held at its gate. */
export type PlannedMount = SourcedMount | TmpfsMount;

/** What comes from a volume. */
export type SourcedMount = VolumeMount | DiskMount;

export interface VolumeMount extends Planned, Sourced {
  kind: "volume";
}

/** The file system in a file of a volume. */
export interface DiskMount extends Planned, Sourced {
  kind: "disk";
  /** Null: what it is found to be. */
  fstype: string | null;
}

interface Sourced {
  /** Such as `mounts[0].name`, for what is wrong with its source. */
  field: string;
  volumeId: string;
  /** A path of that volume; empty: its root. */
  path: string;
}

export interface TmpfsMount extends Planned {
  kind: "tmpfs";
  sizeMib: number;
}

interface Planned {
  /** Such as `mounts[0]`. */
  label: string;
  /** Absolute, normalised. */
  guest: string;
  flags: MountFlags;
}

export type MountFlags = EngineSpec["mounts"][number]["options"];

/** Of the kernel, and made anew at each start; what has content of the sandbox's own has no place there. */
const KERNEL = ["/dev", "/proc", "/sys"];

/** Whether a path is at or below another. Pure. */
export function isWithin(path: string, top: string): boolean {
  return top === "/" || path === top || path.startsWith(`${top}/`);
}

export function isOfKernel(path: string): boolean {
  return KERNEL.some((top) => isWithin(path, top));
}

/** Whether something of a volume is mounted. Pure. */
export function hasVolumes({ mounts }: Pick<EngineSpec, "mounts">): boolean {
  return mounts.some(({ type }) => type !== "tmpfs");
}

/** Pure. */
export function hasDiskImages({ mounts }: Pick<EngineSpec, "mounts">): boolean {
  return mounts.some(({ type }) => type === "disk_image");
}

/** The tmpfs mounts that are left to Docker: beside volumes, which may be their parents, none but the kernel's. Pure. */
export function dockerTmpfs(spec: Pick<EngineSpec, "mounts">): EngineSpec["mounts"] {
  const isDockers = (guest: string) => !hasVolumes(spec) || isOfKernel(posix.normalize(guest));
  return spec.mounts.filter(({ type, guest }) => type === "tmpfs" && isDockers(guest));
}

/** As on a machine of that size; the host's own half would be out of proportion. */
export function tmpfsMib({ resources }: EngineSpec, sizeMib: number | null | undefined): number {
  return sizeMib ?? Math.max(1, Math.floor(resources.memoryMib / 2));
}

/**
 * The mounts of a sandbox that are this engine's to make, parents first; none where there are no volumes. Pure.
 * @throws EngineFailure for what cannot be mounted, or not there
 */
export function planMounts(allocation: Allocation): PlannedMount[] {
  const { spec } = allocation;
  if (!hasVolumes(spec)) return [];
  const left = dockerTmpfs(spec);
  const planned = spec.mounts.flatMap((mount, i) =>
    left.includes(mount) ? [] : [planMount(allocation, mount, `mounts[${i}]`)],
  );
  return planned.sort((a, b) => depth(a.guest) - depth(b.guest));
}

function depth(guest: string): number {
  return guest.split("/").length;
}

function planMount(
  allocation: Allocation,
  mount: EngineSpec["mounts"][number],
  label: string,
): PlannedMount {
  const { spec } = allocation;
  const guest = posix.normalize(mount.guest).replace(/(?<=.)\/$/, "");
  const isRestricted = spec.securityProfile === "restricted";
  const { readonly, noexec, nosuid, nodev } = mount.options;
  const flags = { readonly, noexec, nosuid: nosuid || isRestricted, nodev: nodev || isRestricted };
  const common = { label, guest, flags };
  if (mount.type === "tmpfs")
    return { ...common, kind: "tmpfs", sizeMib: tmpfsMib(spec, mount.sizeMib) };
  if (guest === "/" || isOfKernel(guest))
    throw new EngineFailure(`${label}.guest: ${quote(guest)} is not on the sandbox's disk`);
  const sourced = sourceOf(allocation, mount, label, flags);
  if (mount.type !== "disk_image") return { ...common, kind: "volume", ...sourced };
  const fstype = fstypeOf(mount, label);
  // Who wrote the image made its devices and owners up.
  const own = { ...sourced.flags, nosuid: true, nodev: true };
  return { ...common, kind: "disk", ...sourced, fstype, flags: own };
}

function fstypeOf(
  { format = "raw", fstype = null }: EngineSpec["mounts"][number],
  label: string,
): string | null {
  if (format !== "raw")
    throw new EngineFailure(`${label}.format: ${format} images cannot be mounted on this engine`);
  if (fstype !== null && !isFstype(fstype))
    throw new EngineFailure(`${label}.fstype: ${quote(fstype)} is none of ${FSTYPES.join(", ")}`);
  return fstype;
}

function sourceOf(
  { volumes }: Allocation,
  { type, name, host }: EngineSpec["mounts"][number],
  label: string,
  flags: MountFlags,
): Sourced & Pick<Planned, "flags"> {
  const isNamed = type === "named";
  const field = isNamed ? `${label}.name` : `${label}.host`;
  const volume = volumes[isNamed ? (name ?? "") : ""];
  if (!volume)
    throw new EngineFailure(`${field}: there is no volume ${quote(name ?? "")} any more`);
  const { volumeId, full } = volume;
  const path = isNamed ? "" : (host ?? "");
  return { field, volumeId, path, flags: { ...flags, readonly: flags.readonly || full } };
}

/** Pure. */
export function sourcedMounts(plan: readonly PlannedMount[]): SourcedMount[] {
  return plan.filter((mount) => mount.kind !== "tmpfs");
}

/** The volumes of these mounts, each once. Pure. */
export function volumesOf(plan: readonly PlannedMount[]): string[] {
  return [...new Set(sourcedMounts(plan).map(({ volumeId }) => volumeId))];
}

function quote(text: string): string {
  return JSON.stringify(text);
}
