import cors from "@fastify/cors";
import type { FastifyInstance } from "fastify";

/** Lets pages of these origins call the API with a key; with none, CORS is off. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.register(cors, {
    origin: [...origins],
    methods: ["GET", "HEAD", "POST", "PATCH", "DELETE"],
    allowedHeaders: [
      "authorization",
      "content-type",
      "idempotency-key",
      "last-event-id",
      "x-request-id",
    ],
    exposedHeaders: [
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
