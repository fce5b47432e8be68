import swagger, { type StaticDocumentSpec } from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { HEALTH_ROUTES } from "./health.ts";
import type { Route } from "./http/route.ts";
import { openApiDocument } from "./openapi/document.ts";

// The page needs nothing from elsewhere, and may get nothing from elsewhere.
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "style-src 'self' 'unsafe-inline'",
  "object-src 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** `/openapi.json`, made from the schemas that validate, and `/docs`, which renders it. */
export function serveDocs(app: FastifyInstance, routes: readonly Route[]): void {
  const document = openApiDocument([...routes, ...HEALTH_ROUTES]);
  app.get("/openapi.json", async () => document);
  // The plugin's types stop at OpenAPI 3.0; in this mode it only hands the document to the page.
  const specification = { document } as unknown as StaticDocumentSpec;
  app.register(swagger, { mode: "static", specification });
  app.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: CONTENT_SECURITY_POLICY,
    theme: { title: "Sandgate API" },
    uiConfig: { deepLinking: true, docExpansion: "list", layout: "BaseLayout", validatorUrl: null },
  });
}
