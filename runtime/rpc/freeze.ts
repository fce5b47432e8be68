/** Freezes a message with all that it holds, but for bytes: JavaScript cannot freeze those. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Object.isFrozen(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
  return value;
}

export async function* frozenStream<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const message of messages) yield deepFreeze(message);
}
