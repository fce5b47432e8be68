import type { Child } from "../../test/support/child.ts";
import { isError } from "../../test/support/log-lines.ts";

const MOST_SHOWN = 5;

/** What a process says of itself that must not be: lines at `error`, and ends that nobody asked for. */
export function troublesOf(child: Child): string[] {
  const { name, crashes, lives } = child;
  const lines = child.output().split("\n").filter(isError).slice(0, MOST_SHOWN);
  return [
    ...(crashes > 0 || !lives ? [`ENDED ${name}`] : []),
    ...lines.map((line) => `LOGGED ${name}: ${line.slice(0, 400)}`),
  ];
}
