const MAGIC = "\x7fELF";
const INTERPRETER = 3;

/** Whether a 64-bit little-endian executable runs without a loader, which would be that of a sandbox's disk. Pure. */
export function isStatic(file: Buffer): boolean {
  if (file.length < 64 || file.toString("latin1", 0, 4) !== MAGIC || file[4] !== 2) return false;
  const at = Number(file.readBigUInt64LE(32));
  const size = file.readUInt16LE(54);
  const count = file.readUInt16LE(56);
  for (let i = 0; i < count; i++)
    if (file.readUInt32LE(at + i * size) === INTERPRETER) return false;
  return true;
}
