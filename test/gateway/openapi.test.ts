import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATUS } from "../../gateway/errors.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

interface Media {
  schema: object;
  example?: unknown;
  examples?: Record<string, { $ref: string }>;
}
interface Operation {
  operationId: string;
  parameters?: { $ref?: string }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { headers?: object; content?: Record<string, Media> }>;
}

let gateway: Gateway;
// biome-ignore lint/suspicious/noExplicitAny: a document is looked into at many depths
let document: any;
let operations: [string, Operation][];

beforeAll(async () => {
  gateway = await openGateway();
  document = gateway.contract.document;
  operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
});
afterAll(() => gateway.close());

describe("the document", () => {
  test("is OpenAPI 3.1 of version 0.1.0", () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info.version).toBe("0.1.0");
  });

  test("has what there is and nothing else", () => {
    expect(operations.map(([name]) => name).sort()).toEqual(
      [
        "GET /healthz",
        "GET /readyz",
        "POST /v1/sandboxes",
        "GET /v1/sandboxes",
        "GET /v1/sandboxes/{sandbox_id}",
        "PATCH /v1/sandboxes/{sandbox_id}",
        "DELETE /v1/sandboxes/{sandbox_id}",
        "POST /v1/sandboxes/{sandbox_id}/start",
        "POST /v1/sandboxes/{sandbox_id}/stop",
        "GET /v1/sandboxes/by-name/{name}",
        "DELETE /v1/sandboxes/by-name/{name}",
        "POST /v1/sandboxes/by-name/{name}/start",
        "POST /v1/sandboxes/by-name/{name}/stop",
        "GET /v1/sandboxes/{sandbox_id}/logs",
        "GET /v1/volumes",
        "POST /v1/volumes",
        "GET /v1/volumes/default",
        "GET /v1/volumes/{id}",
        "PATCH /v1/volumes/{id}",
        "DELETE /v1/volumes/{id}",
        "GET /v1/volumes/{id}/files",
        "DELETE /v1/volumes/{id}/files",
        "GET /v1/volumes/{id}/files/content",
        "PUT /v1/volumes/{id}/files/content",
        "GET /v1/volumes/{id}/files/stat",
        "GET /v1/volumes/{id}/files/exists",
        "POST /v1/volumes/{id}/files/mkdir",
        "POST /v1/volumes/{id}/files/copy",
        "POST /v1/volumes/{id}/files/rename",
        "GET /v1/me/org",
        "GET /v1/members",
        "GET /v1/events",
        "GET /v1/events/{event_id}",
        "GET /v1/quotas",
        "GET /v1/billing/usage",
        "GET /v1/billing/usage/sandbox",
        "GET /v1/billing/usage/storage",
      ].sort(),
    );
  });

  test("satisfies Redocly's recommended rules, but for paths that the contract names so", async () => {
    const problems = await redocly(document);
    expect(problems.filter(({ ruleId }) => ruleId !== "no-ambiguous-paths")).toEqual([]);
    // `…/by-name/{name}` and `…/{sandbox_id}/start` could both be `…/by-name/start`; so with `logs`.
    expect(problems).toHaveLength(2);
  });

  test("satisfies the OpenAPI 3.1 schema", async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect({ valid, errors }).toMatchObject({ valid: true });
  });

  test("keeps what only the validator understands to itself", () => {
    const text = JSON.stringify(document);
    for (const own of ["hint", "rule", "published"]) expect(text).not.toContain(`"${own}":`);
  });

  test("has an example of every request and answer, and each fits its schema", () => {
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    ajv.addSchema(document, "api");
    for (const [name, { requestBody, responses }] of operations) {
      const media = [requestBody, ...Object.values(responses)].flatMap((part) => {
        const json = part?.content?.["application/json"];
        return json ? [json] : [];
      });
      for (const { schema, example, examples } of media) {
        const given = examples
          ? Object.keys(examples).map((code) => document.components.examples[code].value)
          : [example];
        const resolved = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/'));
        for (const value of given)
          expect({
            name,
            fits: ajv.validate(resolved, value),
            faults: ajv.errors,
            value,
          }).toMatchObject({
            fits: true,
          });
      }
    }
  });

  test("has an error example for each code, under its status", () => {
    for (const [name, { responses }] of operations)
      for (const [status, { content }] of Object.entries(responses)) {
        const examples = Object.keys(content?.["application/json"]?.examples ?? {});
        const statuses = examples.map((example) => statusOf(example));
        expect({ name, statuses: new Set(statuses) }).toEqual({
          name,
          statuses: new Set(Number(status) < 400 ? [] : [Number(status)]),
        });
      }
  });

  test("takes an idempotency key for every change, and for nothing else", () => {
    const parameter = { $ref: "#/components/parameters/Idempotency-Key" };
    for (const [name, { parameters = [], responses }] of operations) {
      // A file is put as a whole: a repeat does the same again.
      const changes = !/^(GET|PUT) /.test(name);
      const codes = (status: number) =>
        Object.keys(responses[status]?.content?.["application/json"]?.examples ?? {});
      const replayed = (status: number) =>
        "Idempotent-Replayed" in (responses[status]?.headers ?? {});
      expect({
        name,
        taken: parameters.some(({ $ref }) => $ref === parameter.$ref),
        running: codes(409).includes("idempotency_in_progress"),
        reused: codes(422).includes("idempotency_key_reused"),
        invalid: !changes || codes(400).includes("invalid_request"),
        replayed: [200, 404, 409].map((status) => replayed(status)),
      }).toEqual({
        name,
        taken: changes,
        running: changes,
        reused: changes,
        invalid: true,
        replayed: [changes, changes && "404" in responses, changes],
      });
    }
  });

  test("says of every operation that a request may be malformed: headers too large, no HTTP", () => {
    for (const [name, { responses }] of operations)
      expect({ name, malformed: responses[400] !== undefined }).toEqual({ name, malformed: true });
  });

  test("says where a quota may refuse", () => {
    const refused = operations.filter(
      ([, { responses }]) =>
        responses[403]?.content?.["application/json"]?.examples?.quota_exceeded !== undefined,
    );
    expect(refused.map(([name]) => name).sort()).toEqual([
      "POST /v1/sandboxes",
      "POST /v1/sandboxes/by-name/{name}/start",
      "POST /v1/sandboxes/{sandbox_id}/start",
      "POST /v1/volumes/{id}/files/copy",
      "PUT /v1/volumes/{id}/files/content",
    ]);
  });

  test("describes contents as bytes, with their ranges", () => {
    const content = document.paths["/v1/volumes/{id}/files/content"];
    const bytes = { type: "string", format: "binary" };
    const { requestBody, responses: written } = content.put;
    expect(requestBody.content).toMatchObject({ "application/octet-stream": { schema: bytes } });
    expect(written["413"] ?? written["415"]).toBeUndefined();
    const { responses } = content.get;
    for (const status of [200, 206])
      expect(responses[status].content).toMatchObject({
        "application/octet-stream": { schema: bytes },
      });
    expect(responses[206].headers).toHaveProperty("Content-Range");
    expect(responses[304].content).toBeUndefined();
    expect(Object.keys(responses[304].headers)).toEqual(
      expect.arrayContaining(["Accept-Ranges", "ETag"]),
    );
    expect(responses[416].headers).toHaveProperty("Content-Range");
    const path = content.get.parameters.find(
      ({ name }: { name: string }) => name === "x-msb-file-path",
    );
    expect(path).toMatchObject({ in: "header", required: true });
  });

  test("describes parts of a network that no sandbox has yet", () => {
    const { schemas } = document.components;
    expect(Object.keys(schemas.PublishedPort.properties)).toEqual([
      "host_port",
      "guest_port",
      "host_bind",
      "protocol",
    ]);
    expect(schemas.Dns.properties.query_timeout_ms.default).toBe(5000);
    expect(schemas.Interface.properties.mac.minItems).toBe(6);
    expect(schemas.Tls.properties.intercepted_ports.default).toEqual([443]);
    expect(schemas.CertificateCache.properties.validity_hours.default).toBe(24);
  });

  test("names the branch of every union by its tag", () => {
    for (const { discriminator, oneOf } of Object.values<{
      discriminator?: { propertyName: string; mapping: Record<string, string> };
      oneOf?: { $ref: string }[];
    }>(document.components.schemas)) {
      if (!discriminator) continue;
      const { propertyName, mapping } = discriminator;
      expect(Object.values(mapping)).toEqual(oneOf?.map(({ $ref }) => $ref));
      for (const [tag, ref] of Object.entries(mapping)) {
        const branch = document.components.schemas[ref.split("/").at(-1) ?? ""];
        expect(branch.properties[propertyName].const).toBe(tag);
      }
    }
  });
});

describe("the reference", () => {
  test("is a page that loads nothing from elsewhere", async () => {
    const page = await gateway.app.inject("/docs");
    expect(page.statusCode).toBe(200);
    expect(page.headers["content-type"]).toMatch(/^text\/html/);
    expect(page.headers["content-security-policy"]).toContain("default-src 'self'");
    expect(page.body).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    const parts = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = ""]) => url);
    expect(parts.length).toBeGreaterThan(3);
    for (const url of parts) expect((await gateway.app.inject(url)).statusCode).toBe(200);
  });

  test("renders the document itself", async () => {
    expect((await gateway.app.inject("/docs/json")).json()).toEqual(document);
  });
});

/** Of an example: its code's, or the one that it names, of a code that comes with another one. */
function statusOf(example: string): number {
  const [, code = "", named] = /^(.*?)(?:_(\d{3}))?$/.exec(example) ?? [];
  expect(document.components.examples[example].value.error.code).toBe(code);
  return named === undefined ? STATUS[code as keyof typeof STATUS] : Number(named);
}

/** What Redocly finds with its recommended rules. */
async function redocly(given: object): Promise<{ ruleId: string; message: string }[]> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-openapi-"));
  try {
    const file = join(folder, "openapi.json");
    await writeFile(file, JSON.stringify(given));
    const cli = join(import.meta.dirname, "../../node_modules/@redocly/cli/bin/cli.js");
    const args = [cli, "lint", "--extends=recommended", "--format=json", file];
    const env = {
      ...process.env,
      REDOCLY_TELEMETRY: "off",
      REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
    };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env });
    return JSON.parse(stdout).problems;
  } finally {
    await rm(folder, { recursive: true });
  }
}
