/** What there has to be something of, so that a request is about it. */
export type Kind =
  | "sandbox"
  | "sandboxName"
  | "volume"
  | "volumeName"
  | "event"
  | "file"
  | "path"
  | "etag";

/** One of the things that are there when the request is sent; which one is chosen then. */
export class Ref {
  readonly kind: Kind;
  readonly pick: number;

  constructor(kind: Kind, pick: number) {
    this.kind = kind;
    this.pick = pick;
  }
}

/** A copy of a JSON value in which what stands for something that is there is named. */
export function resolve(value: unknown, named: (ref: Ref) => string): unknown {
  if (value instanceof Ref) return named(value);
  if (Array.isArray(value)) return value.map((item) => resolve(item, named));
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [key, item] of Object.entries(value)) copy[key] = resolve(item, named);
  return copy;
}
