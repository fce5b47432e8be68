import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import * as apps from "kubernetes-models/apps/v1";
import * as autoscaling from "kubernetes-models/autoscaling/v2";
import * as batch from "kubernetes-models/batch/v1";
import * as networking from "kubernetes-models/networking.k8s.io/v1";
import * as policy from "kubernetes-models/policy/v1";
import * as core from "kubernetes-models/v1";
import { beforeAll, describe, expect, test } from "vitest";
import { fileText, knownSettings, yamlDocuments, yamlFile } from "./support.ts";

const BASE = "deploy/kubernetes/base";
const EXAMPLE = "deploy/kubernetes/example";
const GROUPS: Record<string, { from: string; models: Record<string, unknown> }> = {
  v1: { from: "v1", models: core },
  "apps/v1": { from: "apps/v1", models: apps },
  "batch/v1": { from: "batch/v1", models: batch },
  "autoscaling/v2": { from: "autoscaling/v2", models: autoscaling },
  "policy/v1": { from: "policy/v1", models: policy },
  "networking.k8s.io/v1": { from: "networking.k8s.io/v1", models: networking },
};

type Labels = Record<string, string>;

interface Container {
  name: string;
  args?: string[];
  env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
  ports?: { name: string; containerPort: number }[];
  lifecycle?: { preStop: { sleep: { seconds: number } } };
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  resources: { requests: Labels; limits: Labels };
  securityContext: {
    readOnlyRootFilesystem: boolean;
    allowPrivilegeEscalation?: boolean;
    privileged?: boolean;
    capabilities: { drop: string[]; add?: string[] };
  };
}

interface Probe {
  httpGet: { path: string; port: string };
}

interface Pod {
  metadata: { labels: Labels };
  spec: {
    containers: Container[];
    automountServiceAccountToken: boolean;
    serviceAccountName: string;
    terminationGracePeriodSeconds: number;
    securityContext: { runAsNonRoot?: boolean; seccompProfile: { type: string } };
  };
}

interface Resource {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: {
    template: Pod;
    selector: { matchLabels: Labels } & Labels;
    podSelector: { matchLabels: Labels };
    ports: { targetPort: string; port: number }[];
    scaleTargetRef: { kind: string; name: string };
  };
}

interface Kustomization {
  resources: string[];
  configMapGenerator: { literals: string[] }[];
}

let resources: Resource[];
let base: Kustomization;

beforeAll(async () => {
  base = (await yamlFile(`${BASE}/kustomization.yaml`)) as Kustomization;
  const texts = await Promise.all(base.resources.map((name) => fileText(`${BASE}/${name}`)));
  resources = texts.flatMap((text) => yamlDocuments(text)) as Resource[];
});

const ofKind = (kind: string) => resources.filter((resource) => resource.kind === kind);
const workloads = () => [...ofKind("Deployment"), ...ofKind("Job")];
const containers = () => workloads().flatMap(({ spec }) => spec.template.spec.containers);

function containerOf(deployment: Resource): Container {
  const [container] = deployment.spec.template.spec.containers;
  if (!container) throw new Error(`${deployment.metadata.name} has no container`);
  return container;
}

function settings(): Record<string, string> {
  const literals = base.configMapGenerator.flatMap(({ literals }) => literals);
  return Object.fromEntries(literals.map((literal) => literal.split("=")));
}

/** Faults by the schemas that Kubernetes publishes. */
function faultsOf({ apiVersion, kind, ...rest }: Resource): string[] {
  const Model = GROUPS[apiVersion]?.models[kind] as
    | (new (
        data: object,
      ) => { validate(): void })
    | undefined;
  if (!Model) return [`${apiVersion} ${kind} is not known`];
  try {
    new Model({ apiVersion, kind, ...rest }).validate();
    return [];
  } catch (error) {
    return [String(error)];
  }
}

/** Those that have a field that Kubernetes does not know, which it would drop: what TypeScript says of the same schemas. */
async function unknownFields(all: readonly Resource[]): Promise<string> {
  const folder = await mkdtemp(join(import.meta.dirname, "kubernetes-"));
  try {
    const lines = all.map(({ apiVersion, kind, ...rest }, i) => {
      const type = `import("kubernetes-models/${GROUPS[apiVersion]?.from}").I${kind}`;
      const data = JSON.stringify({ apiVersion, kind, ...rest });
      return `export const r${i}: ${type} = ${data};`;
    });
    await writeFile(join(folder, "all.ts"), lines.join("\n"));
    const flags = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
      "--ignoreConfig",
    ];
    return await promisify(execFile)("tsc", [...flags, join(folder, "all.ts")]).then(
      ({ stdout }) => stdout,
      (error: { stdout?: string }) => error.stdout || String(error),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("the base lists every file of its folder", async () => {
  const names = (await readdir(BASE)).filter((name) => name !== "kustomization.yaml");
  expect([...base.resources].sort()).toEqual(names.sort());
});

test("every resource is what Kubernetes' schemas allow, with no field that they do not know", async () => {
  const extra = ["namespace.yaml", "ingress.yaml", "monitoring.yaml"];
  const texts = await Promise.all(extra.map((name) => fileText(`${EXAMPLE}/${name}`)));
  const all = [...resources, ...(texts.flatMap(yamlDocuments) as Resource[])];
  expect(all.flatMap(faultsOf)).toEqual([]);
  expect(await unknownFields(all)).toBe("");
  const [deployment] = ofKind("Deployment") as [Resource];
  const wrong = structuredClone(deployment);
  Object.assign(wrong.spec, { replica: 1 });
  expect(await unknownFields([wrong])).toContain('"replica"');
});

test("every role has a deployment, which runs it", () => {
  const roles = ofKind("Deployment").map((one) => containerOf(one).args);
  expect(roles.flat().sort()).toEqual([
    "billing",
    "gateway",
    "orchestrator",
    "organization",
    "sandbox",
  ]);
});

test("every setting is one that the program reads", () => {
  const known = knownSettings();
  const named = containers().flatMap(({ env }) => env.map(({ name }) => name));
  const all = [...named, ...Object.keys(settings())];
  expect(all).toContain("SECRETS_KEY");
  expect(all.filter((name) => !known.has(name))).toEqual([]);
});

test("no secret is written here", () => {
  const secret = /DATABASE_URL|SERVICE_TOKEN|SECRETS_KEY|API_KEY/;
  const values = containers().flatMap(({ env }) => env.filter(({ name }) => secret.test(name)));
  expect(values.length).toBeGreaterThan(5);
  for (const { name, valueFrom } of values)
    expect(valueFrom?.secretKeyRef).toEqual({ name: "sandgate", key: name });
  expect(Object.keys(settings()).filter((name) => secret.test(name))).toEqual([]);
  expect(ofKind("Secret")).toEqual([]);
});

test("selectors choose the pods that they are for", () => {
  for (const { kind, spec, metadata } of resources) {
    if (!["Deployment", "Service", "PodDisruptionBudget"].includes(kind)) continue;
    const wanted = kind === "Service" ? spec.selector : spec.selector.matchLabels;
    const chosen = ofKind("Deployment").filter(({ spec }) =>
      Object.entries(wanted).every(
        ([name, value]) => spec.template.metadata.labels[name] === value,
      ),
    );
    expect(chosen.map((one) => one.metadata.name)).toEqual([metadata.name]);
  }
  const scaled = ofKind("HorizontalPodAutoscaler").map(({ spec }) => spec.scaleTargetRef.name);
  expect(scaled).toEqual(["sandgate-gateway"]);
});

test("probes and services ask ports that the container has, and the program listens on them", () => {
  const { RPC_PORT } = settings();
  for (const deployment of ofKind("Deployment")) {
    const container = containerOf(deployment);
    const ports = new Map(container.ports?.map(({ name, containerPort }) => [name, containerPort]));
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
      expect(ports.has(probe?.httpGet.port ?? "")).toBe(true);
    const service = ofKind("Service").find((one) => one.metadata.name === deployment.metadata.name);
    expect(ports.has(service?.spec.ports[0]?.targetPort ?? "")).toBe(true);
    // The image's own settings, and readConfig's.
    expect(ports.get("admin")).toBe(9100);
    if (ports.has("rpc")) expect(ports.get("rpc")).toBe(Number(RPC_PORT));
    else expect(ports.get("http")).toBe(8080);
  }
});

test("roles find each other by services that exist", () => {
  const urls = containers().flatMap(({ env }) =>
    env.filter(({ name }) => /^(SANDBOX|ORG|ORCH|BILL).*_URL$/.test(name)),
  );
  const services = ofKind("Service").map(
    ({ metadata, spec }) => `http://${metadata.name}:${spec.ports[0]?.port}`,
  );
  expect(urls.length).toBeGreaterThan(5);
  for (const { value } of urls) expect(services).toContain(value);
});

test("nothing is privileged, and only the orchestrator is root", () => {
  for (const { metadata, spec } of workloads()) {
    const pod = spec.template.spec;
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(pod.serviceAccountName).toBe("sandgate");
    expect(pod.securityContext.seccompProfile.type).toBe("RuntimeDefault");
    const isOrchestrator = metadata.name === "sandgate-orchestrator";
    expect(pod.securityContext.runAsNonRoot === true).toBe(!isOrchestrator);
    for (const { securityContext, resources } of pod.containers) {
      expect(securityContext.readOnlyRootFilesystem).toBe(true);
      expect(securityContext.privileged).toBeUndefined();
      expect(securityContext.capabilities.drop).toEqual(["ALL"]);
      if (!isOrchestrator) {
        expect(securityContext.allowPrivilegeEscalation).toBe(false);
        expect(securityContext.capabilities.add).toBeUndefined();
      }
      expect(Object.keys({ ...resources.requests, ...resources.limits }).sort()).toEqual([
        "cpu",
        "memory",
      ]);
    }
  }
});

test("a pod has longer to end than it drains", () => {
  for (const deployment of ofKind("Deployment")) {
    const preStop = containerOf(deployment).lifecycle?.preStop.sleep.seconds ?? 0;
    expect(preStop).toBeGreaterThan(0);
    const drain = preStop + Number(settings().DRAIN_TIMEOUT_SECS);
    expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drain);
  }
});

function kustomize(): string | undefined {
  try {
    return execFileSync("kubectl", ["kustomize", EXAMPLE], { encoding: "utf8", stdio: "pipe" });
  } catch {
    return undefined;
  }
}

const rendered = kustomize();

describe.skipIf(rendered === undefined)(
  `the example overlay${rendered === undefined ? " [skipped: there is no kubectl that renders it]" : ""}`,
  () => {
    test("is what Kubernetes' schemas allow, in one namespace, with the image of the overlay", () => {
      const all = yamlDocuments(rendered ?? "") as Resource[];
      expect(all.length).toBeGreaterThan(resources.length);
      expect(all.flatMap(faultsOf)).toEqual([]);
      expect(rendered).not.toMatch(/image: sandgate$/m);
      for (const { kind, metadata } of all)
        if (kind !== "Namespace") expect(metadata).toMatchObject({ namespace: "sandgate" });
    });
  },
);
