import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

/** Lets pages of these origins call the API with a key; with none, CORS is off. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.register(cors, {
    origin: [...origins],
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: [
      "authorization",
      "content-type",
      "idempotency-key",
      "if-modified-since",
      "if-none-match",
      "if-range",
      "last-event-id",
      "range",
      "x-msb-file-path",
      "x-msb-file-recursive",
      "x-request-id",
    ],
    exposedHeaders: [
      "accept-ranges",
      "content-range",
      "etag",
      "x-request-id",
      "x-ignored-fields",
      "idempotent-replayed",
      "ratelimit-limit",
      "ratelimit-remaining",
      "ratelimit-reset",
      "retry-after",
      "www-authenticate",
    ],
  });
}
