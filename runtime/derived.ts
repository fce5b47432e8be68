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
