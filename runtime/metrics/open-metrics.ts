/** The media types of the two text formats. */
export const PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";
export const OPENMETRICS_TEXT = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * Prometheus' text format as OpenMetrics has it: a counter's family is named without `_total`, no line is empty, and the
 * end is marked. (A registry of prom-client that once wrote OpenMetrics has lost the names of its counters.)
 */
export function toOpenMetrics(text: string): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const counters = new Set(
    lines.flatMap((line) => /^# TYPE (\S+)_total counter$/.exec(line)?.[1] ?? []),
  );
  const renamed = lines.map((line) => {
    const [, head, name, rest] = /^(# (?:HELP|TYPE)) (\S+)_total (.*)$/.exec(line) ?? [];
    return name !== undefined && counters.has(name) ? `${head} ${name} ${rest}` : line;
  });
  return `${renamed.join("\n")}\n# EOF\n`;
}
