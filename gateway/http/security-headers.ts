import type { FastifyInstance } from "fastify";

/** For a year, in seconds. */
const HSTS = { "strict-transport-security": "max-age=31536000" };

/** Of every answer: what is told here is for the client that asked, and no page. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/**
 * What browsers are to heed.
 * @param secure whether this server speaks TLS itself; of a proxy's TLS the proxy speaks
 */
export function securityHeaders(secure: boolean): Readonly<Record<string, string>> {
  return secure ? { ...HEADERS, ...HSTS } : HEADERS;
}

/** Sets them on every answer; a route may say otherwise after it. */
export function sendSecurityHeaders(
  app: FastifyInstance,
  headers: Readonly<Record<string, string>>,
): void {
  app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}
