/** A JSON Schema as the document has it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema | false;
  prefixItems?: Schema[];
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  schema?: Schema;
  content?: { "application/json": { schema: Schema } };
}

interface Media {
  schema: Schema;
  examples?: Record<string, unknown>;
}

export interface DocumentedAnswer {
  headers?: Record<string, unknown>;
  content?: Record<string, Media>;
}

/** What `/openapi.json` answers, as far as it is looked at. */
export interface OpenApi {
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter> };
}

interface DocumentedOperation {
  operationId: string;
  security?: unknown[];
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, DocumentedAnswer>;
}

/** An operation of the document, its parts at hand. */
export interface Operation {
  id: string;
  /** In capitals. */
  method: string;
  /** Such as `/v1/volumes/{id}`. */
  path: string;
  /** Whether it takes no key. */
  open: boolean;
  parameters: Parameter[];
  body: { required: boolean; media: string; schema: Schema } | undefined;
  responses: Record<string, DocumentedAnswer>;
}

/** Every operation that the document has. */
export function operationsOf(document: OpenApi): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) =>
      operationOf(document, method.toUpperCase(), path, operation),
    ),
  );
}

function operationOf(
  document: OpenApi,
  method: string,
  path: string,
  { operationId, security, parameters = [], requestBody, responses }: DocumentedOperation,
): Operation {
  const [content] = Object.entries(requestBody?.content ?? {});
  return {
    id: operationId,
    method,
    path,
    open: security?.length === 0,
    parameters: parameters.map((given) => parameterOf(document, given)),
    body: content && {
      required: requestBody?.required === true,
      media: content[0],
      schema: content[1].schema,
    },
    responses,
  };
}

function parameterOf(document: OpenApi, given: Parameter | { $ref: string }): Parameter {
  if (!("$ref" in given)) return given;
  const found = document.components.parameters[nameOf(given.$ref)];
  if (!found) throw new Error(`no ${given.$ref}`);
  return found;
}

/** The schema of a parameter's value; a map travels as JSON. */
export function schemaOf({ schema, content }: Parameter): Schema {
  return schema ?? content?.["application/json"].schema ?? {};
}

/** `Volume` of `#/components/schemas/Volume`. */
export function nameOf(ref: string): string {
  return ref.split("/").at(-1) ?? "";
}
