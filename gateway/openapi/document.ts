import type { TObject } from "typebox";
import { takesIdempotencyKey } from "../http/idempotency.ts";
import type { OperationBody } from "../http/operation.ts";
import { publish, type Schemas } from "./components.ts";
import {
  codesOf,
  type DocumentedRoute,
  ErrorSchema,
  errorExamples,
  errorResponses,
  headerRefs,
  RATE_LIMITS,
} from "./errors.ts";
import { HEADERS, INFO, PARAMETERS, SECURITY, TAGS } from "./info.ts";

/** OpenAPI 3.1 of these routes, as a JSON value. */
export function openApiDocument(routes: readonly DocumentedRoute[]): Record<string, unknown> {
  const schemas: Schemas = {};
  publish(ErrorSchema, schemas);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes)
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: describe(route, schemas),
    };
  const codes = new Set(routes.flatMap(codesOf));
  return {
    openapi: "3.1.1",
    info: INFO,
    servers: [{ url: "/" }],
    security: [{ api_key: [] }],
    tags: TAGS,
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      examples: errorExamples(codes),
      headers: HEADERS,
      parameters: PARAMETERS,
      securitySchemes: SECURITY,
    },
  };
}

function describe(route: DocumentedRoute, schemas: Schemas): object {
  const { method, operation } = route;
  const { id, tag, summary, description, body } = operation;
  const parameters = [
    ...parametersOf("path", operation.params, schemas),
    ...parametersOf("query", operation.query, schemas),
    ...parametersOf("header", operation.headers, schemas),
    ...(takesIdempotencyKey(method) ? [{ $ref: "#/components/parameters/Idempotency-Key" }] : []),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(operation.open ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: bodyOf(body, schemas) } : {}),
    responses: { 200: success(route, schemas), ...errorResponses(route) },
  };
}

function parametersOf(
  where: "path" | "query" | "header",
  fields: TObject,
  schemas: Schemas,
): object[] {
  return Object.entries(fields.properties).map(([name, type]) => {
    const { description, ...schema }: { description?: string } = type;
    const published = publish(schema, schemas);
    // A map travels as JSON.
    const isMap = "additionalProperties" in schema;
    return {
      name,
      in: where,
      required: where === "path",
      ...(description ? { description } : {}),
      ...(isMap
        ? { content: { "application/json": { schema: published } } }
        : { schema: published }),
    };
  });
}

function bodyOf(
  { schema, optional, example }: OperationBody<TObject["properties"][string]>,
  schemas: Schemas,
) {
  return {
    required: !optional,
    content: { "application/json": { schema: publish(schema, schemas), example } },
  };
}

function success({ method, operation }: DocumentedRoute, schemas: Schemas): object {
  const { body, media, response, example, open } = operation;
  return {
    description: "Done.",
    headers: headerRefs([
      "X-Request-Id",
      ...(body ? ["X-Ignored-Fields"] : []),
      ...(takesIdempotencyKey(method) ? ["Idempotent-Replayed"] : []),
      ...(open ? [] : RATE_LIMITS),
    ]),
    content: { [media]: { schema: publish(response, schemas), example } },
  };
}
