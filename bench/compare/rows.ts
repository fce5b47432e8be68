import type { GrpcTarget, HttpTarget } from "../generator/job.ts";
import { PAGE } from "./cursors.ts";
import type { Stock } from "./database.ts";
import { BODY, SPEC_MESSAGE } from "./spec.ts";

/** One kind of request, as a client of REST and as a caller of the service has it. */
export interface Row {
  title: string;
  /** Shares of the plain monolith's requests a second. */
  goals: { one: number; separate: number };
  /** What it is warmed up with. */
  group: "reads" | "creates";
  rest(stock: Stock): Request[];
  rpc: { method: string; requests(stock: Stock): object[] };
  /** A key that is not good is sent. */
  wrongKey?: boolean;
}

interface Request {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/**
 * An address that guesses keys is answered 429 after twenty of them: these are more than the program remembers at once, so that each
 * is always a new one.
 */
const ADDRESSES = Array.from({ length: 12_000 }, (_, n) => `198.18.${n >> 8}.${n & 255}`);

const get = (path: string): Request => ({ method: "GET", path });
const FIRST_PAGE = `/v1/sandboxes?limit=${PAGE}`;
export const pageAt = (cursor: string) => get(`${FIRST_PAGE}&cursor=${cursor}`);
const byId = ({ ids }: Stock) => ids.map((id) => ({ key: { id } }));

export const ROWS = {
  get: {
    title: "GET by id",
    goals: { one: 1, separate: 0.5 },
    group: "reads",
    rest: ({ ids }) => ids.map((id) => get(`/v1/sandboxes/${id}`)),
    rpc: { method: "GetSandbox", requests: byId },
  },
  name: {
    title: "GET by name",
    goals: { one: 1, separate: 0.5 },
    group: "reads",
    rest: ({ names }) => names.map((name) => get(`/v1/sandboxes/by-name/${name}`)),
    rpc: {
      method: "GetSandbox",
      requests: ({ names }) => names.map((name) => ({ key: { name } })),
    },
  },
  list: {
    title: "list a page of 20, the first one",
    goals: { one: 1, separate: 0.6 },
    group: "reads",
    rest: () => [get(FIRST_PAGE)],
    rpc: { method: "ListSandboxes", requests: () => [{ page_size: PAGE }] },
  },
  walk: {
    title: "list a page of 20, each another one",
    goals: { one: 1, separate: 0.6 },
    group: "reads",
    rest: ({ cursors }) => cursors.map(pageAt),
    rpc: {
      method: "ListSandboxes",
      requests: ({ cursors }) => cursors.map((cursor) => ({ page_size: PAGE, page_token: cursor })),
    },
  },
  create: {
    title: "create (no start)",
    goals: { one: 0.9, separate: 0.6 },
    group: "creates",
    rest: () => [{ method: "POST", path: "/v1/sandboxes", body: JSON.stringify(BODY) }],
    rpc: { method: "CreateSandbox", requests: () => [{ spec: SPEC_MESSAGE }] },
  },
  unauthorized: {
    title: "401 with a wrong key",
    goals: { one: 1, separate: 1 },
    group: "reads",
    rest: ({ ids }) =>
      ADDRESSES.map((address, at) => ({
        ...get(`/v1/sandboxes/${ids[at % ids.length]}`),
        headers: { "x-forwarded-for": address },
      })),
    rpc: { method: "GetSandbox", requests: byId },
    wrongKey: true,
  },
} as const satisfies Record<string, Row>;
export type RowName = keyof typeof ROWS;

const UNAUTHENTICATED = 16;

export function rowOf(name: RowName): Row {
  return ROWS[name];
}

/** By REST, on a gateway or a monolith. */
export function restTarget(row: Row, stock: Stock, port: number): HttpTarget {
  const authorization = row.wrongKey ? stock.wrongKey : stock.apiKey;
  const requests = row.rest(stock).map(({ method, path, headers, body }) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const all = { authorization: `Bearer ${authorization}`, ...type, ...headers };
    return http(method, path, all, body);
  });
  return { kind: "http", port, requests, status: row.wrongKey ? 401 : 200 };
}

/** By Connect's own JSON protocol, straight at the service. */
export function connectTarget(row: Row, stock: Stock, port: number): HttpTarget {
  const { method, requests } = row.rpc;
  const headers = { "content-type": "application/json", "connect-protocol-version": "1" };
  const path = `/sandbox.v1.SandboxService/${method}`;
  const all = requests(stock).map((message) =>
    http("POST", path, { ...headers, ...callerOf(row, stock) }, JSON.stringify(message)),
  );
  return { kind: "http", port, requests: all, status: row.wrongKey ? 401 : 200 };
}

/** By gRPC, straight at the service. */
export function grpcTarget(row: Row, stock: Stock, port: number): GrpcTarget {
  const { method, requests } = row.rpc;
  return {
    kind: "grpc",
    address: `127.0.0.1:${port}`,
    method,
    requests: requests(stock),
    metadata: callerOf(row, stock),
    status: row.wrongKey ? UNAUTHENTICATED : 0,
  };
}

function callerOf({ wrongKey }: Row, { serviceToken, wrongToken, orgId }: Stock) {
  return {
    authorization: `Bearer ${wrongKey ? wrongToken : serviceToken}`,
    "sandgate-organization-id": orgId,
  };
}

function http(method: string, path: string, headers: Record<string, string>, body = ""): string {
  const all = { host: "127.0.0.1", ...headers, ...(body && { "content-length": body.length }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
