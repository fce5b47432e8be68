import { ServiceError } from "../../../runtime/errors.ts";
import type { LogPosition } from "../engines/engine.ts";

/** How far a run's logs are read. */
export interface LogCursor extends LogPosition {
  generation: number;
  /** The lifecycle lines that were read, a bit each. */
  system: bigint;
}

const PAIR = 16;
const PAIRS = 3;

/** One byte that counts pairs, then the pairs of little-endian u64: generation, offset. Pure. */
export function encodeCursor({ generation, stdout, stderr, system }: LogCursor): Uint8Array {
  const bytes = Buffer.alloc(1 + PAIRS * PAIR);
  bytes.writeUInt8(PAIRS);
  [stdout, stderr, system].forEach((offset, i) => {
    bytes.writeBigUInt64LE(BigInt(generation), 1 + i * PAIR);
    bytes.writeBigUInt64LE(offset, 1 + i * PAIR + 8);
  });
  return bytes;
}

/**
 * Where to begin in the latest run. No cursor, one without pairs, and one of an earlier run begin at the beginning. Pure.
 * @param latest generation of the latest run, 0 where there was none
 * @throws ServiceError (INVALID_REQUEST) on a cursor that cannot have been given out
 */
export function startAt(after: Uint8Array, latest: number): LogCursor {
  const beginning = { generation: latest, stdout: 0n, stderr: 0n, system: 0n };
  const pairs = pairsOf(after);
  const [stdout, stderr, system] = pairs;
  if (!stdout || !stderr || !system) {
    if (pairs.length === 0) return beginning;
    throw malformed();
  }
  const isOfOneRun = pairs.length === PAIRS && pairs.every(([of]) => of === stdout[0]);
  if (!isOfOneRun || stdout[0] > BigInt(latest)) throw malformed();
  if (stdout[0] < BigInt(latest)) return beginning;
  return { generation: latest, stdout: stdout[1], stderr: stderr[1], system: system[1] };
}

function pairsOf(after: Uint8Array): [bigint, bigint][] {
  if (after.length === 0) return [];
  const bytes = Buffer.from(after.buffer, after.byteOffset, after.byteLength);
  const count = bytes.readUInt8();
  if (bytes.length !== 1 + count * PAIR) throw malformed();
  return Array.from({ length: count }, (_, i) => [
    bytes.readBigUInt64LE(1 + i * PAIR),
    bytes.readBigUInt64LE(1 + i * PAIR + 8),
  ]);
}

function malformed(): ServiceError {
  const faults = [{ field: "after", message: "is not a cursor of this sandbox's logs" }];
  return new ServiceError("INVALID_REQUEST", "invalid request", { faults });
}
