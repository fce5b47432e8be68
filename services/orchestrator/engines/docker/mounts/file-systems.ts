/**
 * What an image may hold, and what it is mounted with. Left out is what would read another device than the image's own:
 * btrfs finds its devices, and what is mounted already, by numbers that an image can copy, and erofs opens paths that the
 * image names. A journal of its own that ext4 is led to has to be one, and nobody else's just then.
 */
const FILE_SYSTEMS: Record<string, readonly string[]> = {
  // An image must not say that its faults are to bring down the host.
  ext2: ["errors=remount-ro"],
  ext3: ["errors=remount-ro"],
  ext4: ["errors=remount-ro"],
  squashfs: [],
  // Copies of one image are no conflict.
  xfs: ["nouuid"],
};

const READ_ONLY = ["squashfs"];

export const FSTYPES = Object.keys(FILE_SYSTEMS);

export function isFstype(name: string): boolean {
  return FSTYPES.includes(name);
}

/** Whether it can only be read. */
export function isReadOnly(fstype: string): boolean {
  return READ_ONLY.includes(fstype);
}

/** What it is mounted with, beside the flags. */
export function optionsOf(fstype: string): readonly string[] {
  return FILE_SYSTEMS[fstype] ?? [];
}
