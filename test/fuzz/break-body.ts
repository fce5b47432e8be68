import type { Spoil } from "./spoils.ts";

/** A place inside a JSON value: what holds it, and under which name. */
interface Place {
  holder: Record<string | number, unknown>;
  key: string | number;
}

/** A copy of a JSON value with members replaced, removed and added. */
export function applyToBody(value: unknown, spoils: readonly Spoil[]): unknown {
  const root: Record<string, unknown> = { value: structuredClone(value) };
  for (const spoil of spoils) {
    const places = [...placesIn(root, "value")];
    if (spoil.kind === "replace") replace(places, spoil.at, spoil.value);
    if (spoil.kind === "remove") remove(places.slice(1), spoil.at);
    if (spoil.kind === "add") add(places, spoil);
  }
  return root.value;
}

function replace(places: readonly Place[], at: number, value: unknown): void {
  const place = places[at % places.length];
  if (place) place.holder[place.key] = value;
}

function remove(places: readonly Place[], at: number): void {
  const place = places[at % places.length];
  if (place && !Array.isArray(place.holder)) delete place.holder[place.key];
  else if (place && Array.isArray(place.holder)) place.holder.splice(Number(place.key), 1);
}

function add(places: readonly Place[], spoil: Extract<Spoil, { kind: "add" }>): void {
  const objects = places.flatMap(({ holder, key }) => {
    const value = holder[key];
    return typeof value === "object" && value !== null && !Array.isArray(value) ? [value] : [];
  });
  const object = objects[spoil.at % objects.length];
  // As a member of its own also where it is called `__proto__`.
  if (object)
    Object.defineProperty(object, spoil.key, {
      value: spoil.value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

function* placesIn(
  holder: Record<string | number, unknown>,
  key: string | number,
): Generator<Place> {
  yield { holder, key };
  const value = holder[key];
  if (typeof value !== "object" || value === null) return;
  // Of long arrays some are enough.
  const keys = Array.isArray(value) ? [...value.keys()].slice(0, 50) : Object.keys(value);
  for (const inner of keys) yield* placesIn(value as Record<string | number, unknown>, inner);
}

const DEPTH = 50_000;

/** JSON text that is none any more, or has a meaning of its own. */
export function breakText(json: Buffer, { at, how }: Extract<Spoil, { kind: "text" }>): Buffer {
  const text = json.toString();
  const i = at % Math.max(text.length, 1);
  switch (how) {
    case "cut":
      return json.subarray(0, at % Math.max(json.length, 1));
    case "insert":
      return Buffer.from(`${text.slice(0, i)}${'{}[],:"\\\u0000x1'[at % 12]}${text.slice(i)}`);
    case "bom":
      return Buffer.concat([Buffer.from("\ufeff"), json]);
    case "latin1":
      return Buffer.concat([json.subarray(0, i), Buffer.from([0xe9]), json.subarray(i)]);
    case "comma":
      return Buffer.from(text.replace(/([}\]])$/, ",$1"));
    case "twice":
      return Buffer.from(text.replace(/^\{("(?:[^"\\]|\\.)*"):/, "{$1:null,$1:"));
    case "nan":
      return Buffer.from(text.replace(/:("[^"]*"|\d+|true|false|null)/, ":NaN"));
    case "deep":
      return Buffer.from("[".repeat(DEPTH) + "]".repeat(DEPTH));
    case "behind":
      return Buffer.from(`${text} ${text}`);
  }
}
