import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { METRICS } from "../../runtime/metrics/catalogue.ts";
import { comeTrue } from "../support/come-true.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { apiOf, image } from "../support/program.ts";
import { readPromql } from "../support/promql.ts";
import { fileText, yamlFile } from "./support.ts";

const SLOW = { timeout: 60_000 };
/** What Prometheus itself adds. */
const ADDED = ["job", "instance"];
/** Made by Prometheus for every target. */
const TARGET = { up: new Set<string>() };

interface Rule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: string };
  annotations: { summary: string; runbook_url: string };
}

let database: TestDatabase;
let dataDir: string;
let deployment: Deployment;
/** Every metric of the running roles, and the labels that its samples have. */
let exposed: Map<string, Set<string>>;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), "sandgate-watching-"));
  const env = { ADMIN_PORT: "0", LOG_LEVEL: "info" };
  deployment = await createDeployment({ databaseUrl: database.url, dataDir, env });
  for (const child of deployment.all) child.start();
  await comeTrue(deployment.isReady);
  const api = apiOf(deployment.url, deployment.apiKey);
  const made = await api("POST", "/v1/sandboxes?start=true&wait_for=running", image());
  expect(made.body.status).toBe("running");
  expect((await apiOf(deployment.url, "nobody's")("GET", "/v1/sandboxes")).status).toBe(401);
  // What is told only when something has been measured.
  await comeTrue(async () => {
    exposed = await scrapeAll();
    return exposed.has(METRICS.volumesOldest.name) && exposed.has(METRICS.observedAt.name);
  });
}, 120_000);
afterAll(async () => {
  await deployment?.close();
  await database?.close();
  await rm(dataDir, { recursive: true, force: true });
});

async function scrapeAll(): Promise<Map<string, Set<string>>> {
  const all = new Map<string, Set<string>>(Object.entries(TARGET));
  for (const child of deployment.all) {
    const [, url] = /"url":"([^"]+)","msg":"the admin port is open"/.exec(child.output()) ?? [];
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [, name = "", labels = ""] of text.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gim)) {
      const known = all.get(name) ?? new Set();
      for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
      all.set(name, known);
    }
  }
  return all;
}

/** Names of an expression that no role answers with. */
function unknown(expression: string): string[] {
  const { metrics, labels } = readPromql(expression);
  const had = new Set(metrics.flatMap((name) => [...(exposed.get(name) ?? [])]));
  return [
    ...metrics.filter((name) => !exposed.has(name)),
    ...labels.filter((label) => !ADDED.includes(label) && !had.has(label)),
  ];
}

async function panels(): Promise<{ title: string; exprs: string[] }[]> {
  const dashboard = JSON.parse(await fileText("deploy/grafana/sandgate.json"));
  return dashboard.panels
    .filter(({ type }: { type: string }) => type !== "row")
    .map(({ title, targets }: { title: string; targets: { expr: string }[] }) => ({
      title,
      // Grafana's own word for an interval, which PromQL does not know.
      exprs: targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "5m")),
    }));
}

async function rules(): Promise<Rule[]> {
  const { groups } = (await yamlFile("deploy/prometheus/alerts.yml")) as {
    groups: { rules: Rule[] }[];
  };
  return groups.flatMap((group) => group.rules);
}

test("what reads names finds what is wrong", () => {
  expect(() => readPromql("sum(rate(a[5m])")).toThrow("no PromQL");
  expect(unknown('sum by (rooute) (rate(sandgate_http_requests_totl{code="5"}[5m]))')).toEqual([
    "sandgate_http_requests_totl",
    "rooute",
    "code",
  ]);
});

test("every panel of the dashboard asks for what the roles answer", SLOW, async () => {
  const all = await panels();
  expect(all.length).toBeGreaterThan(20);
  for (const { title, exprs } of all)
    for (const expr of exprs) expect([title, ...unknown(expr)]).toEqual([title]);
});

test("so does every alert, which says how bad it is, how long it lasts, and what to do", async () => {
  const headings = (await fileText("docs/watching.md")).matchAll(/^### (\w+)$/gm);
  const runbooks = [...headings].map(([, name]) => name);
  const all = await rules();
  expect(all.map(({ alert }) => alert)).toEqual(runbooks);
  for (const { alert, expr, labels, annotations, ...rule } of all) {
    expect([alert, ...unknown(expr)]).toEqual([alert]);
    expect(["critical", "warning"]).toContain(labels.severity);
    expect(rule.for).toMatch(/^\d+[smh]$/);
    expect(annotations.summary).not.toBe("");
    expect(annotations.runbook_url).toBe(`docs/watching.md#${alert.toLowerCase()}`);
  }
});

test("the dashboard shows every metric of ours that the roles answer, and the catalogue has no other", async () => {
  const shown = new Set(
    (await panels()).flatMap(({ exprs }) => exprs.flatMap((e) => readPromql(e).metrics)),
  );
  const family = (name: string) => name.replace(/_(bucket|sum|count)$/, "");
  const families = new Set([...shown].map(family));
  for (const { name } of Object.values(METRICS)) expect([...families]).toContain(name);
  const names = Object.values(METRICS).map(({ name }) => name);
  const ours = [...exposed.keys()].filter((name) => name.startsWith("sandgate_"));
  for (const name of ours) expect(names).toContain(family(name));
});

test("the scrape's job is the one that the alerts name", async () => {
  const { scrape_configs: jobs } = (await yamlFile("deploy/prometheus/prometheus.yml")) as {
    scrape_configs: { job_name: string }[];
  };
  const text = await readFile("deploy/prometheus/alerts.yml", "utf8");
  const named = new Set([...text.matchAll(/job="(\w+)"/g)].map(([, job]) => job));
  expect([...named]).toEqual(jobs.map(({ job_name }) => job_name));
});
