/** A field of a message: what is null is left unset. */
export function given<Key extends string, Value>(
  key: Key,
  value: Value | null,
): { [K in Key]?: Value } {
  // A computed key widens to string, so the shape has to be said.
  return (value === null ? {} : { [key]: value }) as { [K in Key]?: Value };
}
