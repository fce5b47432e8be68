/** What is found along a path of properties in a value of unknown shape. */
export function dig(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined,
    value,
  );
}
