import type { TObject } from "typebox";
import { takesIdempotencyKey } from "../http/idempotency.ts";
import type { Operation, OperationBody } from "../http/operation.ts";
import { publish, type Schemas } from "./components.ts";
import {
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
  return {
    openapi: "3.1.1",
    info: INFO,
    servers: [{ url: "/" }],
    security: [{ api_key: [] }],
    tags: TAGS,
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      examples: errorExamples(routes),
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
    responses: {
      200: success(route, schemas),
      ...variants(route, schemas),
      ...errorResponses(route),
    },
  };
}

function parametersOf(
  where: "path" | "query" | "header",
  fields: TObject,
  schemas: Schemas,
): object[] {
  const required: readonly string[] = where === "header" ? (fields.required ?? []) : [];
  return Object.entries(fields.properties).map(([name, type]) => {
    const { description, ...schema }: { description?: string } = type;
    const published = publish(schema, schemas);
    // A map travels as JSON.
    const isMap = "additionalProperties" in schema;
    return {
      name,
      in: where,
      required: where === "path" || required.includes(name),
      ...(description ? { description } : {}),
      ...(isMap
        ? { content: { "application/json": { schema: published } } }
        : { schema: published }),
    };
  });
}

function bodyOf(body: OperationBody<TObject["properties"][string]>, schemas: Schemas) {
  const { schema, optional, example } = body;
  const media = body.media ?? "application/json";
  return {
    required: !optional,
    content: { [media]: { schema: publish(schema, schemas), example } },
  };
}

function success({ method, operation }: DocumentedRoute, schemas: Schemas): object {
  const { body, open, responseHeaders } = operation;
  return {
    description: "Done.",
    headers: headerRefs([
      "X-Request-Id",
      ...responseHeaders,
      ...(body && !body.media ? ["X-Ignored-Fields"] : []),
      ...(takesIdempotencyKey(method) ? ["Idempotent-Replayed"] : []),
      ...(open ? [] : RATE_LIMITS),
    ]),
    content: contentOf(operation, schemas),
  };
}

function variants({ operation }: DocumentedRoute, schemas: Schemas): Record<number, object> {
  const described = operation.variants.map(({ status, description, responseHeaders, hasBody }) => [
    status,
    {
      description,
      headers: headerRefs(["X-Request-Id", ...responseHeaders, ...RATE_LIMITS]),
      ...(hasBody ? { content: contentOf(operation, schemas) } : {}),
    },
  ]);
  return Object.fromEntries(described);
}

function contentOf({ media, response, example }: Operation, schemas: Schemas): object {
  return { [media]: { schema: publish(response, schemas), example } };
}
