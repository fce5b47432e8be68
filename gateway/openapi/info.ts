/** The words of the reference that belong to no operation. */
export const INFO = {
  title: "Sandgate API",
  version: "0.1.0",
  summary: "Sandboxes on your own machines, by the microsandbox cloud API.",
  description: `JSON in and out. Every success is 200; every other answer has the body of \`Error\`.
A path that is no route is \`404 not_found\`; a known path with another method is
\`405 method_not_allowed\`, with \`Allow\`. Field names are snake_case, times are RFC 3339 in UTC, and
optional fields of answers are null rather than left out. In a request null means absent for every
optional field; types are never coerced. An unknown field in \`network\`, \`runtime\`, a mount, a patch,
a rule or a secret is refused; elsewhere it is ignored, and named in \`X-Ignored-Fields\`.`,
  license: { name: "Apache 2.0", identifier: "Apache-2.0" },
} as const;

export const TAGS = [
  { name: "Sandboxes", description: "Machines made from images." },
  { name: "Volumes", description: "Storage that outlives sandboxes." },
  {
    name: "Files",
    description: "What is in a volume. A path begins at its root, with or without a `/`.",
  },
  { name: "Organization", description: "Who the key belongs to." },
  { name: "Audit", description: "What was done, and by whom." },
  { name: "Quotas", description: "What the organization may use." },
  { name: "Usage", description: "What it used, and what that costs." },
  { name: "Health", description: "For whoever watches the program; no key is asked for." },
];

export const SECURITY = {
  api_key: {
    type: "http",
    scheme: "bearer",
    description: "An API key of the organization: `Authorization: Bearer sgt_live_…`.",
  },
};

export const HEADERS = {
  "X-Request-Id": {
    description: "Names this request in logs: the client's own, where it sent a sane one.",
    schema: { type: "string" },
    example: "req-7f3a",
  },
  "X-Ignored-Fields": {
    description: "Paths of the request's fields that are not known here and were ignored.",
    schema: { type: "string" },
    example: "resources.gpus",
  },
  "Idempotent-Replayed": {
    description:
      "`true` where this is what an earlier request with the same `Idempotency-Key` was answered.",
    schema: { type: "string", enum: ["true"] },
    example: "true",
  },
  "RateLimit-Limit": {
    description: "How many requests this key may make at once, after a rest.",
    schema: { type: "integer" },
    example: 2000,
  },
  "RateLimit-Remaining": {
    description: "How many of them are left now.",
    schema: { type: "integer" },
    example: 1999,
  },
  "RateLimit-Reset": {
    description: "Seconds until all of them are there again, where no more are made; rounded up.",
    schema: { type: "integer" },
    example: 1,
  },
  "Retry-After": {
    description: "Seconds after which to try again.",
    schema: { type: "integer" },
    example: 1,
  },
  "Accept-Ranges": {
    description: "That a part of it may be asked for.",
    schema: { type: "string", enum: ["bytes"] },
    example: "bytes",
  },
  "Content-Length": {
    description: "How many bytes follow.",
    schema: { type: "integer", format: "int64" },
    example: 11,
  },
  "Content-Range": {
    description: "Which bytes of how many these are; of none, how many there are.",
    schema: { type: "string" },
    example: "bytes 0-10/1024",
  },
  ETag: {
    description: "Another one as soon as the content may be another.",
    schema: { type: "string" },
    example: '"9-1a2b3c-18f0"',
  },
  "Last-Modified": {
    description: "When the content last changed, where that is in the past.",
    schema: { type: "string" },
    example: "Sat, 21 Nov 2026 08:15:30 GMT",
  },
  "WWW-Authenticate": {
    description: "How to authenticate.",
    schema: { type: "string" },
    example: "Bearer",
  },
};

export type HeaderName = keyof typeof HEADERS;

export const PARAMETERS = {
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description: `Any text that the client makes up for this one change, such as a UUID. A repeat within 24 hours with the
same method, path, query and body gets the first answer again and changes nothing; refusals by state or quota are
remembered too.`,
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x20-\\x7e]+$" },
    example: "2c1f9a0e-5b7d-4a53-9c1e-8f6d2b3a4e5f",
  },
};
