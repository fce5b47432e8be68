/** An image reference, taken apart. */
export interface Reference {
  /** As the sandbox's owner wrote it. */
  text: string;
  /** Such as `docker.io` or `localhost:5000`. */
  host: string;
  /** As Docker shows it: without what it takes for granted, such as `busybox` or `ghcr.io/a/b`. */
  name: string;
  /** A digest where there is one, else the tag. */
  version: { kind: "tag" | "digest"; value: string };
}

const HUB = "docker.io";

/** Takes a valid reference apart. Pure. */
export function parseReference(text: string): Reference {
  const [named = "", digest] = text.split("@", 2);
  const tagAt = named.indexOf(":", named.lastIndexOf("/") + 1);
  const path = tagAt < 0 ? named : named.slice(0, tagAt);
  const tag = tagAt < 0 ? "latest" : named.slice(tagAt + 1);
  const version = { kind: digest ? "digest" : "tag", value: digest ?? tag } as const;
  const [first = "", ...rest] = path.split("/");
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  const host = !hasHost || first === "index.docker.io" ? HUB : first;
  const name = host === HUB ? hubName(hasHost ? rest : [first, ...rest]) : path;
  return { text, host, name, version };
}

function hubName(parts: string[]): string {
  const [first, ...rest] = parts;
  return first === "library" && rest.length === 1 ? rest.join("/") : parts.join("/");
}

/** The whole of it as Docker shows it, such as `busybox:latest` or `ghcr.io/a/b@sha256:…`. */
export function familiar({ name, version }: Reference): string {
  return `${name}${version.kind === "tag" ? ":" : "@"}${version.value}`;
}
