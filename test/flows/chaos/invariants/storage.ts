import { type AccruedDays, accrue, DAY } from "../../../support/storage-accrual.ts";
import type { Facts } from "../facts.ts";
import type { AccrualRow, SampleRow } from "../volumes/facts.ts";

/** What is accrued is what the measurements come to, each stretch between two of them once; none comes after the end. */
export function accrued({ volumes: { rows, accruals, samples } }: Facts): string[] {
  const accruedOf = Map.groupBy(accruals, ({ volumeId }) => volumeId);
  const samplesOf = Map.groupBy(samples, ({ volumeId }) => volumeId);
  const ids = new Set([...accruedOf.keys(), ...samplesOf.keys()]);
  return [
    ...[...ids].flatMap((id) => {
      const taken = samplesOf.get(id) ?? [];
      return [...unlike(id, taken, accruedOf.get(id) ?? []), ...outOfOrder(id, taken)];
    }),
    ...rows
      .filter(({ deleted }) => !deleted)
      .flatMap(({ id, usedBytes }) => {
        const last = samplesOf.get(id)?.at(-1);
        // Its making is the first measurement of a volume, and of nothing.
        const same = last
          ? !last.ended && Number(last.bytes) === (usedBytes ?? 0)
          : usedBytes === null;
        return same ? [] : [`${id} was measured to hold ${usedBytes}, but accrues ${last?.bytes}`];
      }),
    ...[...samplesOf]
      .filter(([id, taken]) => !taken.at(-1)?.ended && !rows.some((row) => row.id === id))
      .map(([id]) => `${id} is gone, and goes on to accrue`),
  ];
}

function unlike(id: string, samples: readonly SampleRow[], rows: readonly AccrualRow[]): string[] {
  const expected: AccruedDays = new Map();
  for (const [i, { at, bytes }] of samples.entries()) {
    const before = samples[i - 1];
    if (before && before.at < at)
      accrue(expected, [before.at, BigInt(before.bytes)], [at, BigInt(bytes)]);
  }
  const tell = (day: number, from: number, to: number, byteMs: bigint | string) =>
    `day ${day} from ${from} to ${to}: ${byteMs}`;
  const wanted = [...expected]
    .map(([day, { start, end, byteMs }]) => tell(day, start - day * DAY, end - day * DAY, byteMs))
    .sort();
  const found = rows
    .map(({ day, startMs, endMs, byteMs }) => tell(day, startMs, endMs, byteMs))
    .sort();
  return String(wanted) === String(found)
    ? []
    : [`${id} accrued ${found.join(", ")}, and its measurements come to ${wanted.join(", ")}`];
}

function outOfOrder(id: string, samples: readonly SampleRow[]): string[] {
  return samples.flatMap(({ at }, i) => {
    const before = samples[i - 1];
    if (!before) return [];
    if (before.ended) return [`${id} was measured after its end`];
    return before.at <= at ? [] : [`${id} was measured at ${before.at}, and then at ${at}`];
  });
}
