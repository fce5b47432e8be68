import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { comeTrue } from "../support/come-true.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { type CollectedSpan, startCollector } from "../support/otlp-collector.ts";
import { type Api, apiOf, image } from "../support/program.ts";

const SLOW = { timeout: 30_000 };
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CLIENT = "b7ad6b7169203331";

describe("traces through every role", { timeout: 90_000 }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let deployment: Deployment;
  let collector: Awaited<ReturnType<typeof startCollector>>;
  let api: Api;

  beforeAll(async () => {
    database = await createTestDatabase();
    collector = await startCollector();
    dataDir = await mkdtemp(join(tmpdir(), "sandgate-traces-"));
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=sand%20gate",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    };
    deployment = await createDeployment({ databaseUrl: database.url, dataDir, env });
    api = apiOf(deployment.url, deployment.apiKey);
    for (const child of deployment.all) child.start();
    await comeTrue(deployment.isReady);
  }, 120_000);
  afterAll(async () => {
    await deployment?.close();
    await collector?.close();
    await database?.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const named = (spans: readonly CollectedSpan[], service: string, name: string) =>
    spans.find((span) => span.service === `sandgate-${service}` && span.name === name);

  /** Each span below the one before. */
  function chain(spans: readonly CollectedSpan[], ...path: [service: string, name: string][]) {
    return path.map(([service, name]) => {
      const span = named(spans, service, name);
      const parent = spans.find(({ spanId }) => spanId === span?.parentId);
      return `${service} ${name} < ${parent ? `${parent.service.slice(9)} ${parent.name}` : span?.parentId}`;
    });
  }

  test("one trace from the client's own span through calls, statements, queue, engine and reports", async () => {
    const made = await api(
      "POST",
      "/v1/sandboxes?start=true&wait_for=running",
      { ...image(), name: "traced" },
      { headers: { traceparent: `00-${TRACE}-${CLIENT}-01`, tracestate: "vendor=1" } },
    );
    expect(made.body.status).toBe("running");
    const inTrace = () => collector.spans.filter(({ traceId }) => traceId === TRACE);
    const names = () => inTrace().map(({ service, name }) => `${service} ${name}`);
    await expect.poll(names, SLOW).toContain("sandgate-gateway POST /v1/sandboxes");
    await expect.poll(names, SLOW).toContain("sandgate-orchestrator start run");
    await expect.poll(names, SLOW).toContain("sandgate-sandbox reportRunning");
    const create = "sandbox.v1.SandboxService/CreateSandbox";
    const report = "sandbox.v1.SandboxService/Report";
    expect(
      chain(
        inTrace(),
        ["gateway", "POST /v1/sandboxes"],
        ["gateway", create],
        ["sandbox", create],
        ["sandbox", "createSandbox"],
        ["orchestrator", "start run"],
        ["orchestrator", "engine ensure_running"],
        ["orchestrator", report],
        ["sandbox", report],
        ["sandbox", "reportRunning"],
      ),
    ).toEqual([
      `gateway POST /v1/sandboxes < ${CLIENT}`,
      `gateway ${create} < gateway POST /v1/sandboxes`,
      `sandbox ${create} < gateway ${create}`,
      `sandbox createSandbox < sandbox ${create}`,
      "orchestrator start run < sandbox createSandbox",
      "orchestrator engine ensure_running < orchestrator start run",
      `orchestrator ${report} < orchestrator start run`,
      `sandbox ${report} < orchestrator ${report}`,
      `sandbox reportRunning < sandbox ${report}`,
    ]);
    expect(named(inTrace(), "gateway", "POST /v1/sandboxes")).toMatchObject({
      kind: 2,
      failed: false,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/v1/sandboxes",
        "http.response.status_code": 200,
        "url.path": "/v1/sandboxes",
        "sandgate.request_id": made.headers.get("x-request-id"),
      },
    });
    expect(collector.headers[0]).toMatchObject({ "x-tenant": "sand gate" });
    // What is given is asked for by name, and never a value of it.
    expect(JSON.stringify(inTrace())).not.toContain("traced");
  });

  test("a stop has a trace of its own, in which its machine is stopped", async () => {
    const before = new Set(collector.spans);
    await api("POST", "/v1/sandboxes/by-name/traced/stop");
    const fresh = () => collector.spans.filter((span) => !before.has(span));
    const stop = () => named(fresh(), "gateway", "POST /v1/sandboxes/by-name/{name}/stop");
    await expect.poll(stop, SLOW).toBeDefined();
    await expect
      .poll(() => named(fresh(), "orchestrator", "engine stop"), SLOW)
      .toMatchObject({
        traceId: stop()?.traceId,
      });
    expect(stop()?.parentId).toBe("");
  });

  test("what a client does not want to be sampled is not, in any process", async () => {
    const trace = "1".repeat(32);
    const made = await api(
      "POST",
      "/v1/sandboxes?start=true&wait_for=running",
      { ...image(), name: "unseen" },
      { headers: { traceparent: `00-${trace}-${CLIENT}-00` } },
    );
    expect(made.body.status).toBe("running");
    // Later than that.
    await api("GET", "/v1/quotas");
    const later = () => named(collector.spans, "gateway", "GET /v1/quotas");
    await expect.poll(later, SLOW).toBeDefined();
    expect(collector.spans.filter(({ traceId }) => traceId === trace)).toEqual([]);
  });

  test("a traceparent that is none begins a trace anew", async () => {
    const headers = { traceparent: "00-nonsense" };
    await api("GET", "/v1/events", undefined, { headers });
    const listed = () => named(collector.spans, "gateway", "GET /v1/events");
    await expect.poll(listed, SLOW).toMatchObject({ parentId: "" });
  });

  test("work of the background is in no trace", () => {
    const roots = collector.spans.filter(({ parentId }) => parentId === "");
    expect(roots.filter(({ service }) => service !== "sandgate-gateway")).toEqual([]);
  });

  test("the last spans get out before the program ends, and without a collector all goes on", async () => {
    const { gateway } = deployment;
    await api("GET", "/v1/me/org");
    await gateway.stop();
    const last = named(collector.spans, "gateway", "GET /v1/me/org");
    expect(last).toBeDefined();
    await collector.close();
    gateway.start();
    await expect.poll(deployment.isReady, SLOW).toBe(true);
    expect((await api("GET", "/v1/sandboxes")).status).toBe(200);
  });
});
