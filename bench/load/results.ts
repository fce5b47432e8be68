import { createHistogram, type RecordableHistogram } from "node:perf_hooks";
import type { Kind } from "./mix.ts";

interface Result {
  /** In microseconds, from when it was due. */
  times: RecordableHistogram;
  errors: Map<string, number>;
}

/** What came of the operations, by kind. */
export class Results {
  readonly #kinds = new Map<Kind, Result>();
  /** The longest that an operation began behind its time. */
  latestMs = 0;

  add(kind: Kind, tookMs: number, error: string | undefined): void {
    const result = this.#kinds.get(kind) ?? { times: createHistogram(), errors: new Map() };
    this.#kinds.set(kind, result);
    result.times.record(Math.max(1, Math.round(tookMs * 1_000)));
    if (error) result.errors.set(error, (result.errors.get(error) ?? 0) + 1);
  }

  get count(): number {
    return this.#sum(({ times }) => times.count);
  }

  get errors(): number {
    return this.#sum(errorsOf);
  }

  #sum(of: (result: Result) => number): number {
    return [...this.#kinds.values()].reduce((sum, result) => sum + of(result), 0);
  }

  /** Lines of a table in Markdown, the most frequent kind first; times in milliseconds. */
  table(): string[] {
    const kinds = [...this.#kinds].sort(([, a], [, b]) => b.times.count - a.times.count);
    const rows = kinds.map(([kind, { times, errors }]) => {
      const [p50, p95, p99] = [50, 95, 99].map((p) => ms(times.percentile(p)));
      const failed = errorsOf({ times, errors });
      return `| ${kind} | ${times.count} | ${failed} | ${p50} | ${p95} | ${p99} | ${ms(times.max)} |`;
    });
    return [
      "| operation | count | errors | p50 ms | p95 | p99 | max |",
      "|---|---|---|---|---|---|---|",
      ...rows,
    ];
  }

  /** Each error that there was, and how often. */
  errorLines(): string[] {
    return [...this.#kinds].flatMap(([kind, { errors }]) =>
      [...errors].map(([error, count]) => `ERROR ${kind}: ${error} (${count} times)`),
    );
  }
}

function errorsOf({ errors }: Result): number {
  return [...errors.values()].reduce((sum, count) => sum + count, 0);
}

function ms(micros: number): string {
  return (micros / 1_000).toFixed(1);
}
