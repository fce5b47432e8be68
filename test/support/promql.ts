import { parser } from "@prometheus-io/lezer-promql";

/** What an expression names. */
export interface Named {
  metrics: string[];
  /** Of matchers, `by` and `without`. */
  labels: string[];
}

/** @throws Error where it is no PromQL */
export function readPromql(expression: string): Named {
  const metrics = new Set<string>();
  const labels = new Set<string>();
  parser.parse(expression).iterate({
    enter: ({ type, from, to, node }) => {
      const text = expression.slice(from, to);
      if (type.isError) throw new Error(`no PromQL at ${from}: ${expression}`);
      if (type.name === "Identifier" && node.parent?.name === "VectorSelector") metrics.add(text);
      if (type.name === "LabelName") labels.add(text);
    },
  });
  return { metrics: [...metrics], labels: [...labels] };
}
