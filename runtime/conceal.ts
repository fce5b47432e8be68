import { inspect } from "node:util";

/** What stands for a secret where it would be seen. */
const CONCEALED = "[secret]";

/**
 * Lets an object be printed, or made JSON of, without what it holds under these names.
 * @returns the object itself
 */
export function conceal<T extends object>(holder: T, ...names: readonly (keyof T)[]): T {
  const shown = () => {
    const set = names.filter((name) => holder[name] !== undefined);
    return { ...holder, ...Object.fromEntries(set.map((name) => [name, CONCEALED])) };
  };
  return Object.defineProperties(holder, {
    [inspect.custom]: { value: shown },
    toJSON: { value: shown },
  });
}
