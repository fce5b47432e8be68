import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Definition } from "./define.ts";

// They look at every connection, and gauges that end in `_total` are no OpenMetrics.
const UNWANTED = ["resources", "handles", "requests"].flatMap((of) => [
  `nodejs_active_${of}`,
  `nodejs_active_${of}_total`,
]);

type LabelsOf<L extends string> = Record<L, string>;

/** Writes one value of a gauge down. */
export type Put<L extends string> = (value: number, labels: LabelsOf<L>) => void;

type Read<L extends string> = (put: Put<L>) => Promise<void> | void;

/** What one program counts. Nothing is shared between two of them in one process. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #reads = new Map<string, Read<string>[]>();

  counter<L extends string>(definition: Definition<"counter", L>): Counter<L> {
    return this.#once(definition, () => new Counter<L>(this.#settings(definition)));
  }

  histogram<L extends string>(definition: Definition<"histogram", L>): Histogram<L> {
    const buckets = [...(definition.buckets ?? [])];
    return this.#once(
      definition,
      () => new Histogram<L>({ ...this.#settings(definition), buckets }),
    );
  }

  /**
   * A gauge that is read when somebody looks; what `read` does not put, or where it fails, is not there. Several parts may
   * each tell of their own.
   * @param read may ask others, for a moment
   */
  gauge<L extends string>(definition: Definition<"gauge", L>, read: Read<L>): void {
    const reads = this.#readsOf(definition, read);
    if (reads.length > 1) return;
    const gauge: Gauge<L> = new Gauge<L>({
      ...this.#settings(definition),
      collect: async () => {
        const values = await Promise.all(reads.map(valuesOf));
        clear(gauge);
        for (const [value, labels] of values.flat()) gauge.set(labels, value);
      },
    });
    clear(gauge);
  }

  /** A counter that somebody else keeps, read when somebody looks; likewise of several parts. */
  total<L extends string>(definition: Definition<"counter", L>, read: Read<L>): void {
    const reads = this.#readsOf(definition, read);
    if (reads.length > 1) return;
    const counter: Counter<L> = new Counter<L>({
      ...this.#settings(definition),
      collect: async () => {
        const values = await Promise.all(reads.map(valuesOf));
        counter.reset();
        for (const [value, labels] of values.flat()) counter.inc(labels, value);
      },
    });
  }

  /** The process's own: CPU, memory, garbage collection, event loop. */
  countProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
    for (const name of UNWANTED) this.#registry.removeSingleMetric(name);
  }

  /** All of it, in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #settings<L extends string>({
    name,
    help,
    labels,
  }: Definition<"counter" | "gauge" | "histogram", L>) {
    return { name, help, labelNames: labels, registers: [this.#registry] };
  }

  #readsOf<L extends string>({ name }: Definition, read: Read<L>): Read<L>[] {
    const reads = (this.#reads.get(name) ?? []) as Read<L>[];
    reads.push(read);
    this.#reads.set(name, reads as Read<string>[]);
    return reads;
  }

  // Two parts of a program may count the same.
  #once<M>({ name }: Definition, make: () => M): M {
    return (this.#registry.getSingleMetric(name) as M | undefined) ?? make();
  }
}

/** Without labels, `reset` alone would leave a 0. */
function clear<L extends string>(gauge: Gauge<L>): void {
  gauge.reset();
  gauge.remove({} as LabelsOf<L>);
}

/** Whoever is asked says itself what goes wrong; a value that nobody has is none. */
async function valuesOf<L extends string>(read: Read<L>): Promise<[number, LabelsOf<L>][]> {
  const values: [number, LabelsOf<L>][] = [];
  try {
    await read((value, labels) => void values.push([value, labels]));
    return values;
  } catch {
    return [];
  }
}
