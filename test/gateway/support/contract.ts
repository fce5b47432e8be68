import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { expect } from "vitest";
import { closed } from "../../support/closed-schema.ts";
import type { Answer } from "./gateway.ts";

/** The parts of an OpenAPI document that answers are held against. */
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, DocumentedResponse> }>>;
  components: { schemas: Record<string, object> };
}

interface DocumentedResponse {
  headers: Record<string, unknown>;
}

/** The documented contract, with every object closed: what is not documented must not be there. */
export interface Contract {
  document: Document;
  /** Fails the test where an answer is not one that the document has. */
  check(method: string, url: string, answer: Answer): void;
}

export function readContract(document: Document): Contract {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(closed(document) as object, "api");
  const validators = new Map<string, ValidateFunction>();
  const validate = (pointer: string) => {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` });
    validators.set(pointer, known);
    return known;
  };
  return {
    document,
    check(method, url, answer) {
      expect(answer.headers["x-request-id"]).toMatch(/^[\x21-\x7e]{1,128}$/);
      checkHeaders(document, method, url, answer);
      const pointer = pointerOf(document, method, url, answer.status);
      if (pointer === undefined || answer.body === undefined) return;
      const check = validate(pointer);
      check(answer.body);
      expect({ answer: answer.body, faults: check.errors }).toMatchObject({ faults: null });
    },
  };
}

/** Where the document describes this answer's body; an answer that it lacks fails the test. */
function pointerOf(document: Document, method: string, url: string, status: number) {
  const error = "/components/schemas/Error";
  const path = pathOf(document, url.split("?")[0] ?? "");
  const operation = path && document.paths[path]?.[method.toLowerCase()];
  if (!operation || status === 405) return status >= 400 ? error : undefined;
  // A path that does not decode reaches no operation.
  expect({ status, documented: Object.keys(operation.responses) }).toMatchObject({
    documented: expect.arrayContaining([String(status)]),
  });
  const escaped = path.replaceAll("/", "~1");
  const content = `responses/${status}/content/application~1json/schema`;
  return `/paths/${escaped}/${method.toLowerCase()}/${content}`;
}

const DOCUMENTED =
  /^(accept-ranges|content-range|etag|last-modified|x-ignored-fields|idempotent-replayed|ratelimit-.*|retry-after|www-authenticate)$/;

/** Fails the test where the answer has a header of ours that the document has not. */
function checkHeaders(document: Document, method: string, url: string, answer: Answer): void {
  const path = pathOf(document, url.split("?")[0] ?? "");
  const responses = document.paths[path ?? ""]?.[method.toLowerCase()]?.responses;
  const response = responses?.[answer.status];
  if (!response) return;
  const documented = Object.keys(response.headers).map((name) => name.toLowerCase());
  const sent = Object.keys(answer.headers).filter((name) => DOCUMENTED.test(name));
  expect({ status: answer.status, documented }).toMatchObject({
    documented: expect.arrayContaining(sent),
  });
}

function pathOf(document: Document, given: string): string | undefined {
  const fits = (path: string) =>
    new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(given);
  return Object.keys(document.paths).find(fits);
}
