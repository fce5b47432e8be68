import type { PagePoint, Slice } from "../runtime/pages.ts";

/** A row with its place in time: microseconds since 1970. */
export interface Placed {
  id: string;
  us: bigint | number;
}

/** SQL for microseconds since 1970, exact. */
export function toUs(column: string): string {
  return `(extract(epoch FROM ${column}) * 1000000)::bigint`;
}

/** SQL for the moment that a parameter (digits) gives in microseconds since 1970. */
export function fromUs(parameter: string): string {
  return `timestamptz 'epoch' + ${parameter}::text::bigint * interval '1 microsecond'`;
}

/** One row more than wanted says that there are more. */
export function slice<Row extends Placed>(rows: Row[], limit: number): Slice<Row> {
  const wanted = rows.slice(0, limit);
  const last = rows.length > limit ? wanted.at(-1) : undefined;
  return { rows: wanted, next: last ? { us: String(last.us), id: last.id } : null };
}

/** Parameters of a statement that has a condition only where it is asked for, so that an index bounds the read. */
export class Conditions {
  readonly values: unknown[] = [];
  readonly #conditions: string[] = [];

  /** Adds a parameter. @returns its place, such as `$3` */
  place(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  add(condition: string): void {
    this.#conditions.push(condition);
  }

  /** Only what is behind `after`, newest first. */
  behind(after: PagePoint | null, time: string, id: string): void {
    if (!after) return;
    const at = fromUs(this.place(after.us));
    this.add(`(${time}, ${id}) < (${at}, ${this.place(after.id)}::uuid)`);
  }

  get sql(): string {
    return this.#conditions.join(" AND ");
  }
}
