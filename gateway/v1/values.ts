import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

/** In public JSON null and absent both say that nothing was given; a message has one word for it. */
export function given<T>(value: T | null | undefined): T | undefined {
  return value ?? undefined;
}

export function toBigInt(value: number | null | undefined): bigint | undefined {
  return value == null ? undefined : BigInt(value);
}

/** int64 values of ours fit a JSON number: requests bound them. */
export function toNumber(value: bigint | undefined): number | null {
  return value === undefined ? null : Number(value);
}

/**
 * RFC 3339 in UTC, with milliseconds.
 * @throws Error where a service left out a time that is always there
 */
export function toTime(timestamp: Timestamp | undefined): string {
  if (!timestamp) throw new Error("the answer lacks a time");
  return timestampDate(timestamp).toISOString();
}

/** The message's word for a public one; 0, its word for nothing, where none was given. */
export function numberOf<T extends Record<string, number>>(
  table: T,
  name: (keyof T & string) | null | undefined,
): T[keyof T] | 0 {
  return name == null ? 0 : table[name];
}

/**
 * The public word for what a message carries.
 * @throws Error on a value that this gateway is too old to know
 */
export function nameOf<T extends Record<string, number>>(table: T, value: number) {
  const names: (keyof T & string)[] = Object.keys(table);
  const name = names.find((name) => table[name] === value);
  if (name === undefined) throw new Error(`no public word for ${value}`);
  return name;
}

/** The public word, or `byDefault` where the message says nothing. */
export function nameOr<T extends Record<string, number>>(
  table: T,
  value: number,
  byDefault: keyof T & string,
) {
  return value === 0 ? byDefault : nameOf(table, value);
}
