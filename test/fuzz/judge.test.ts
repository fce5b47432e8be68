import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, openGateway } from "../gateway/support/gateway.ts";
import { isError } from "../support/log-lines.ts";
import type { Built } from "./build.ts";
import type { Case } from "./cases.ts";
import { type OpenApi, type Operation, operationsOf } from "./document.ts";
import type { Answer } from "./http.ts";
import { Judge } from "./judge.ts";

let gateway: Gateway;
let document: OpenApi;
let judge: Judge;

beforeAll(async () => {
  gateway = await openGateway();
  document = gateway.contract.document as unknown as OpenApi;
  judge = new Judge(document);
});
afterAll(() => gateway.close());

const JSON_TYPE = "application/json; charset=utf-8";
const health = { status: "ok" };
const refusal = (code: string) => ({
  error: { code, message: "no", details: { errors: [{ field: "body.x", message: "no" }] } },
});

interface Given {
  id?: string;
  built?: Partial<Built>;
  body?: string;
  answer?: Partial<Answer>;
}

/** What the judge says of an answer to a good request, changed in places. */
function faultOf({ id = "health", built, body, answer }: Given): string | undefined {
  const operation = operationsOf(document).find((each) => each.id === id) as Operation;
  const { method, path } = operation;
  const request = { method, target: path, query: "", headers: {}, about: undefined };
  return judge.faultOf(
    { operation } as Case,
    {
      request: { ...request, body: body === undefined ? undefined : Buffer.from(body) },
      isGood: true,
      isRouted: true,
      isKnown: true,
      path: {},
      query: {},
      ...built,
    },
    {
      status: 200,
      body: health,
      ...answer,
      headers: { "content-type": JSON_TYPE, "x-request-id": "1", ...answer?.headers },
    },
  );
}

describe("what a fuzz run takes for a fault", () => {
  test("is nothing that the document has", () => {
    expect(faultOf({})).toBeUndefined();
    const answer = { status: 404, body: refusal("sandbox_not_found") };
    expect(faultOf({ id: "getSandbox", answer })).toBeUndefined();
  });

  const invalid = { status: 400, body: refusal("invalid_request") };
  test.each<[string, Given, RegExp]>([
    ["a fault of the server", { answer: { status: 500, body: refusal("internal") } }, /status 500/],
    ["a status", { answer: { status: 201 } }, /201 is not documented/],
    ["a field", { answer: { body: { ...health, more: 1 } } }, /additional properties more/],
    ["a field that is missing", { answer: { body: {} } }, /required/],
    ["a type", { answer: { headers: { "content-type": "text/html" } } }, /content type/],
    ["a header", { answer: { headers: { etag: '"1"' } } }, /etag is not documented/],
    ["no request id", { answer: { headers: { "x-request-id": "" } } }, /X-Request-Id/],
    ["a banner", { answer: { headers: { server: "x/1" } } }, /banner/],
    ["an error that is no envelope", { answer: { status: 400, body: {} } }, /envelope/],
    [
      "a code",
      { id: "getSandbox", answer: { status: 404, body: refusal("volume_not_found") } },
      /volume_not_found with 404 is not documented/,
    ],
    ["a good request that is refused", { id: "listSandboxes", answer: invalid }, /good request/],
    [
      "a bad query that is not",
      { id: "getQuotas", built: { query: {} }, answer: { body: { total_sandboxes: "5" } } },
      /body/,
    ],
    [
      "a path that fits nothing",
      { built: { isRouted: false }, answer: { status: 404, body: "no" } },
      /envelope/,
    ],
  ])("is %s that the document has not", (_, given, fault) => {
    expect(faultOf(given)).toMatch(fault);
  });

  test("is a success of a request that does not fit", () => {
    const at = { id: "makeDirectory", answer: { body: { message: "directory made" } } };
    const path = { id: "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44" };
    expect(faultOf({ ...at, built: { path }, body: '{"path":"/a"}' })).toBeUndefined();
    expect(faultOf({ ...at, built: { path }, body: '{"path":5}' })).toMatch(/accepts a body/);
    expect(faultOf({ ...at, built: { path }, body: '{"path"' })).toMatch(/accepts a body/);
    expect(faultOf({ ...at, built: { path } })).toMatch(/accepts no body/);
    const built = { path: { id: "x" } };
    expect(faultOf({ ...at, built, body: '{"path":"/a"}' })).toMatch(/accepts path id/);
  });
});

test.each([
  ['{"level":"error","msg":"request failed","code":"internal"}', true],
  ['{"level":"fatal","msg":"x"}', true],
  ["    at file:///main.ts:1:1", true],
  ["(node:1) MaxListenersExceededWarning: x", true],
  ['{"level":"error","msg":"request failed","code":"deadline_exceeded"}', false],
  ['{"level":"warn","err":{"stack":"Error: x"}}', false],
  ["Sandgate is ready.", false],
])("a line of the log: %s", (line, is) => {
  expect(isError(line)).toBe(is);
});
