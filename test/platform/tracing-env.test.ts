import { expect, test } from "vitest";
import { readConfig } from "../../runtime/env.ts";

const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" };
const read = (env: Record<string, string>) => readConfig(env).tracing;

test("it is off unless a collector is named, and where it is switched off", () => {
  expect(read({ OTEL_SERVICE_NAME: "x" })).toBeUndefined();
  expect(read({ ...BASE, OTEL_SDK_DISABLED: "true" })).toBeUndefined();
  expect(read({ ...BASE, OTEL_TRACES_EXPORTER: "none" })).toBeUndefined();
});

test("a collector of traces alone is taken as it is", () => {
  expect(read(BASE)?.url).toBe("http://collector:4318/v1/traces");
  const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://t.example.org/otlp" };
  expect(read({ ...BASE, ...own })?.url).toBe("https://t.example.org/otlp");
});

test("what it is sent with and called", () => {
  expect(
    read({
      ...BASE,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20a%3D,x-tenant=b",
      OTEL_SERVICE_NAME: "edge",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25",
    }),
  ).toEqual({
    url: "http://collector:4318/v1/traces",
    headers: { authorization: "Bearer a=", "x-tenant": "b" },
    serviceName: "edge",
    resource: { "deployment.environment.name": "test" },
    sampler: { name: "parentbased_traceidratio", ratio: 0.25 },
  });
});

test.each([
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
  ["OTEL_TRACES_SAMPLER", "sometimes"],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "secret"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"],
])("%s=%s is refused by name, its value left out", (name, value) => {
  const refused = () => read({ ...BASE, [name]: value });
  expect(refused).toThrow(`${name} must be`);
  expect(refused).not.toThrow(value);
});
