/** Characters of all texts that one keeps, of two bytes at most. */
const ROOM = 4 * 1024 * 1024;

/**
 * Makes something of a text once, for as long as the text comes again: who gets it shares it, and must not change it. What was
 * not asked for while half the room was filled anew is forgotten.
 * @param make pure
 */
export function interned<T extends object>(
  make: (text: string) => T,
  room = ROOM,
): (text: string) => T {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let used = 0;
  return (text) => {
    const known = young.get(text);
    if (known !== undefined) return known;
    const value = old.get(text) ?? make(text);
    // It would push all others out.
    if (text.length > room / 2) return value;
    used += text.length;
    if (used > room / 2) {
      old = young;
      young = new Map();
      used = text.length;
    }
    young.set(text, value);
    return value;
  };
}

/**
 * What is made of an object that never changes, made once for as long as the object lives.
 * @param make pure
 */
export function derived<From extends object, To extends object | string>(
  make: (from: From) => To,
): (from: From) => To {
  const known = new WeakMap<From, To>();
  return (from) => {
    const there = known.get(from);
    if (there !== undefined) return there;
    const made = make(from);
    known.set(from, made);
    return made;
  };
}
