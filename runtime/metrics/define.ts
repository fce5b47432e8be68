/** What a metric is, apart from its values. */
export interface Definition<K extends Kind = Kind, L extends string = string> {
  kind: K;
  name: string;
  help: string;
  labels: readonly L[];
  /** Upper bounds of a histogram's buckets, in seconds. */
  buckets?: readonly number[];
}

export type Kind = "counter" | "gauge" | "histogram";

/** Answers of milliseconds, and what hangs. */
const CALL_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];
/** What an engine does: up to the pull of an image. */
const WORK_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export const counter = of("counter");
export const gauge = of("gauge");
export const histogram = of("histogram", CALL_BUCKETS);
export const workHistogram = of("histogram", WORK_BUCKETS);

function of<K extends Kind>(kind: K, buckets?: readonly number[]) {
  return <const L extends string = never>(
    name: string,
    help: string,
    labels: readonly L[] = [],
  ): Definition<K, L> => ({ kind, name, help, labels, ...(buckets && { buckets }) });
}
