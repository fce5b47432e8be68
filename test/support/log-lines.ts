// Said when nothing on the machine moves for seconds, or when not all roles are up yet. Whoever asks meanwhile reads 503 or 504.
const STALL =
  /deadline_exceeded|service_unavailable|orchestrator_unreachable|does not answer|no notification arrives|timed out/;

/** A line of the log about a fault, or one of Node's own about such; not that something was not there for a moment. */
export function isError(line: string): boolean {
  const level = /^\{"level":"?(\w+)/.exec(line)?.[1];
  if (level === undefined) return /^ {4}at |^\w*Error: |\(node:\d+\)/.test(line);
  return /^(error|fatal|[56]0)$/.test(level) && !STALL.test(line);
}
