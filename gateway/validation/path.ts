const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
// Longer than any key that is valid; an answer does not repeat megabytes of a request.
const MOST_SHOWN = 256;

/**
 * Appends a key or an index to a public path: `mounts[0].guest`, `labels["a b"]`. Of a key that is
 * too long for any field its beginning is shown.
 */
export function joinPath(path: string, part: string | number): string {
  if (typeof part === "number") return `${path}[${part}]`;
  if (part.length > MOST_SHOWN) return joinPath(path, `${part.slice(0, MOST_SHOWN - 3)}...`);
  if (!PLAIN.test(part)) return `${path}[${asciiJson(part)}]`;
  return path === "" ? part : `${path}.${part}`;
}

/** The public path of a JSON pointer into `root`; the value tells an index from a key that looks like one. */
export function pathOfPointer(root: unknown, pointer: string): string {
  let path = "";
  let value = root;
  for (const part of pointer.split("/").slice(1).map(unescapePointer)) {
    path = joinPath(path, Array.isArray(value) ? Number(part) : part);
    value = childOf(value, part);
  }
  return path;
}

function childOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}

function unescapePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

// Paths also travel in a header.
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
