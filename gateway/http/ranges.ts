/** Bytes of a file: `length` of them from `offset` on, undefined: to the end; or its last `last`. */
export type ByteRange = { offset: bigint; length: bigint | undefined } | { last: bigint };

const SINGLE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;
const INT64_MAX = 2n ** 63n - 1n;

/**
 * The one range of bytes that a `Range` header asks for.
 * @returns undefined where all is to be sent: for several ranges, other units, and what is no range
 */
export function rangeOf(header: string | undefined): ByteRange | undefined {
  const [, first = "", last = ""] = SINGLE.exec(header ?? "") ?? [];
  if (first === "") return last === "" ? undefined : { last: int64(last) };
  const offset = int64(first);
  if (last === "") return { offset, length: undefined };
  const end = int64(last);
  return end < offset ? undefined : { offset, length: int64(String(end - offset + 1n)) };
}

function int64(digits: string): bigint {
  const value = BigInt(digits);
  return value < INT64_MAX ? value : INT64_MAX;
}
