// Of a value with more parts than this only the first fault is looked for.
const MAX_SIZE = 256 * 1024;

/** Whether a JSON value, file contents given as arrays of bytes left out, is small enough to find every fault. */
export function isModest(value: unknown): boolean {
  let size = 0;
  const rest: unknown[] = [value];
  while (rest.length > 0 && size <= MAX_SIZE) {
    const next = rest.pop();
    size += pushChildren(next, rest, MAX_SIZE - size);
  }
  return size <= MAX_SIZE;
}

/** Adds what is inside `value` to `rest`; returns how much it counts itself: text is one, however long. */
function pushChildren(value: unknown, rest: unknown[], room: number): number {
  if (typeof value !== "object" || value === null) return 1;
  const children: unknown[] = Array.isArray(value) ? value : Object.entries(value).flatMap(pair);
  if (children.length > room) return children.length;
  for (const child of children) rest.push(child);
  return 1;
}

/** A file's `content` is left out: one rule checks all of it, and finds no more than a few faults. */
function pair([key, value]: [string, unknown]): unknown[] {
  return key === "content" && Array.isArray(value) ? [key] : [key, value];
}
