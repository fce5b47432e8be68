/** What is known of a content that is asked for. */
export interface Validators {
  /** A strong one, in quotes. */
  etag: string;
  /** In Unix milliseconds. */
  modifiedMs: number;
}

export interface Conditions {
  "If-Match"?: string;
  "If-None-Match"?: string;
  "If-Modified-Since"?: string;
  "If-Range"?: string;
}

/** Whether the client asks for another content than this one (RFC 9110, 13.1.1): `If-Match`, by strong tags alone. */
export function isOther({ "If-Match": wanted }: Conditions, { etag }: Validators): boolean {
  if (wanted === undefined || wanted.trim() === "*") return false;
  return ![...wanted.matchAll(/(W\/)?("[^"]*")/g)].some(([tag]) => tag === etag);
}

/** Whether the client has it already (RFC 9110, 13.1.2 and 13.1.3). */
export function isUnchanged(conditions: Conditions, { etag, modifiedMs }: Validators): boolean {
  const { "If-None-Match": known, "If-Modified-Since": since } = conditions;
  if (known !== undefined) return known.trim() === "*" || tagsOf(known).includes(etag);
  const date = since === undefined ? Number.NaN : dateOf(since);
  return !Number.isNaN(date) && Math.floor(modifiedMs / 1_000) * 1_000 <= date;
}

/**
 * Whether a range may be sent (RFC 9110, 13.1.5). A date never says so: whoever may write a file may give it any time, so it
 * does not tell one content from another.
 */
export function isSame({ "If-Range": known }: Conditions, { etag }: Validators): boolean {
  return known === undefined || known.trim() === etag;
}

/** `Last-Modified`, where it is one: a time of the future would be none. */
export function lastModified({ modifiedMs }: Validators): Record<string, string> {
  if (modifiedMs < 0 || modifiedMs > Date.now()) return {};
  return { "last-modified": new Date(modifiedMs).toUTCString() };
}

// Weak or not, they are compared weakly.
function tagsOf(header: string): string[] {
  return [...header.matchAll(/(?:W\/)?("[^"]*")/g)].map(([, tag = ""]) => tag);
}

// As everybody writes it; what is no such date is ignored.
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
}
