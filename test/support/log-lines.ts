// Said of the database or of another process when nothing on the machine moves for seconds.
const STALL = /deadline_exceeded|does not answer|no notification arrives|timed out/;

/** A line of the log about a fault, or one of Node's own about such; not that something took too long. */
export function isError(line: string): boolean {
  if (STALL.test(line)) return false;
  const level = /^\{"level":(\d+)/.exec(line)?.[1];
  return level === undefined ? /^ {4}at |Error: |\(node:\d+\)/.test(line) : Number(level) >= 50;
}
