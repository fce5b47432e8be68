import type { FastifyInstance, InjectOptions } from "fastify";
import pino from "pino";
import { expect } from "vitest";
import { buildApp, type GatewayOptions } from "../../../gateway/app.ts";
import { Metrics } from "../../../runtime/metrics/metrics.ts";
import { type Contract, readContract } from "./contract.ts";
import { FakeServices, KEY } from "./fake-services.ts";

export interface Answer {
  status: number;
  headers: Record<string, string | undefined>;
  /** Parsed; undefined where the answer is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
}

/** A gateway on fake services; every answer is held against the documented contract. */
export interface Gateway {
  app: FastifyInstance;
  services: FakeServices;
  contract: Contract;
  metrics: Metrics;
  /** What was logged, a JSON object a line. */
  logged: Record<string, unknown>[];
  /** A request with a good key and, where there is a body, as JSON. */
  call(method: string, url: string, body?: unknown, options?: InjectOptions): Promise<Answer>;
  close(): Promise<void>;
}

type Config = GatewayOptions["config"];

/** No limits, and no proxies. */
export const UNLIMITED: Pick<Config, "rateLimit" | "trustedProxies"> = {
  rateLimit: { perSecond: 0, burst: 1, redisUrl: undefined },
  trustedProxies: [],
};
const LIMITED = { ...UNLIMITED, rateLimit: { perSecond: 1000, burst: 2000, redisUrl: undefined } };

export async function openGateway(given: Partial<Config> = {}): Promise<Gateway> {
  const services = new FakeServices();
  const logged: Record<string, unknown>[] = [];
  const metrics = new Metrics();
  const level = given.logRequests ? "info" : "warn";
  const log = pino({ level }, { write: (line) => logged.push(JSON.parse(line)) });
  const app = buildApp({
    clients: services.clients(),
    config: { ...LIMITED, corsOrigins: [], waitsMax: 2000, watchBackoffMs: 1, ...given },
    log,
    metrics,
    readiness: async () => ({ ready: true, checks: { database: true } }),
  });
  await app.ready();
  const contract = readContract((await app.inject("/openapi.json")).json());
  const call: Gateway["call"] = async (method, url, body, options = {}) => {
    const answer = await inject(app, method, url, body, options);
    contract.check(method, url, answer);
    return answer;
  };
  return { app, services, contract, metrics, logged, call, close: () => app.close() };
}

async function inject(
  app: FastifyInstance,
  method: string,
  url: string,
  body: unknown,
  { headers, ...options }: InjectOptions,
): Promise<Answer> {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  // A header of undefined is one that is not sent.
  const all = Object.entries({ authorization: `Bearer ${KEY}`, ...json, ...headers });
  const payload = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const response = await app.inject({
    // Any method may be sent, known to the types or not.
    method: method as "GET",
    url,
    headers: Object.fromEntries(all.filter(([, value]) => value !== undefined)),
    ...(payload === undefined ? {} : { payload }),
    ...options,
  });
  const answered = response.headers as Answer["headers"];
  const isJson = answered["content-type"] === "application/json; charset=utf-8";
  return {
    status: response.statusCode,
    headers: answered,
    body: isJson && response.body !== "" ? JSON.parse(response.body) : undefined,
  };
}

/** The paths of the faults of a 400, after a look at the envelope around them. */
export function faultPaths({ status, body }: Answer): string[] {
  expect({ status, code: body?.error?.code }).toEqual({ status: 400, code: "invalid_request" });
  const errors: { field: string; message: string }[] = body.error.details.errors;
  const [first] = errors;
  expect(body.error.message).toBe(`invalid request: ${first?.field}: ${first?.message}`);
  return errors.map(({ field }) => field);
}
