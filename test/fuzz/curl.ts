import type { Request } from "./http.ts";

const MOST = 2_000;

/** A line for a shell that sends the same; a body of many bytes is told by its beginning. */
export function curl(url: string, { method, target, headers, body }: Request): string {
  const given = Object.entries(headers)
    .filter(([name]) => name !== "Authorization" && name !== "Content-Length")
    .map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const key = headers.Authorization?.startsWith("Bearer sgt_")
    ? ['-H "Authorization: Bearer $KEY"']
    : headers.Authorization === undefined
      ? []
      : [`-H ${quoted(`Authorization: ${headers.Authorization}`)}`];
  const data = body ? [`--data-binary ${bytes(body)}`] : [];
  return ["curl -sS --path-as-is -X", method, quoted(url + target), ...key, ...given, ...data].join(
    " ",
  );
}

function bytes(body: Buffer): string {
  const text = body.toString();
  const cut = text.length > MOST ? `${text.slice(0, MOST)}…(${body.length} bytes)` : text;
  return quoted(cut);
}

/** For bash, control characters told by their numbers. */
function quoted(text: string): string {
  const plain = /^[\x20-\x26\x28-\x7e]*$/.test(text);
  if (plain) return `'${text}'`;
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "\\'")
    .replaceAll(/\p{Cc}/gu, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `$'${escaped}'`;
}
