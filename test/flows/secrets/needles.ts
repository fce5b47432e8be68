/** Every form in which a text may lie somewhere: as it is, or encoded by what stored or logged it. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = [0, 1, 2].map((offset) => insideBase64(bytes, offset));
  return [
    secret,
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    bytes.join(","),
    bytes.join(", "),
  ];
}

/** What base64 certainly holds of these bytes where `offset` (modulo 3) others come before them. */
function insideBase64(bytes: Buffer, offset: number): string {
  const first = Math.ceil((offset * 8) / 6);
  const end = Math.floor(((offset + bytes.length) * 8) / 6);
  return Buffer.concat([Buffer.alloc(offset), bytes])
    .toString("base64")
    .slice(first, end);
}

/** A text to be looked through, and where it is from. */
export interface Place {
  name: string;
  text: string;
}

/** Where any of these secrets can be read, in any form, as `what: place`. */
export function find(
  secrets: Readonly<Record<string, string>>,
  places: readonly Place[],
): string[] {
  return Object.entries(secrets).flatMap(([what, secret]) => {
    const forms = formsOf(secret);
    const found = places.filter(({ text }) => forms.some((form) => text.includes(form)));
    return [...new Set(found.map(({ name }) => `${what}: ${name}`))];
  });
}
