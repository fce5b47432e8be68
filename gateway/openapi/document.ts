import type { TObject } from "typebox";
import type { Operation, OperationBody } from "../http/operation.ts";
import type { Route } from "../http/route.ts";
import { publish, type Schemas } from "./components.ts";
import {
  codesOf,
  ErrorSchema,
  errorExamples,
  errorResponses,
  headerRefs,
  RATE_LIMITS,
} from "./errors.ts";
import { HEADERS, INFO, SECURITY, TAGS } from "./info.ts";

type DocumentedRoute = Pick<Route, "method" | "path" | "operation">;

/** OpenAPI 3.1 of these routes, as a JSON value. */
export function openApiDocument(routes: readonly DocumentedRoute[]): Record<string, unknown> {
  const schemas: Schemas = {};
  publish(ErrorSchema, schemas);
  const paths: Record<string, Record<string, object>> = {};
  for (const { path, method, operation } of routes)
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, schemas) };
  const codes = new Set(routes.flatMap(({ operation }) => codesOf(operation)));
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
      securitySchemes: SECURITY,
    },
  };
}

function describe(operation: Operation, schemas: Schemas): object {
  const { id, tag, summary, description, body } = operation;
  const parameters = [
    ...parametersOf("path", operation.params, schemas),
    ...parametersOf("query", operation.query, schemas),
    ...parametersOf("header", operation.headers, schemas),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(operation.open ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: bodyOf(body, schemas) } : {}),
    responses: { 200: success(operation, schemas), ...errorResponses(operation) },
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

function success({ body, media, response, example, open }: Operation, schemas: Schemas): object {
  const ignored = body ? ["X-Ignored-Fields"] : [];
  return {
    description: "Done.",
    headers: headerRefs(["X-Request-Id", ...ignored, ...(open ? [] : RATE_LIMITS)]),
    content: { [media]: { schema: publish(response, schemas), example } },
  };
}
