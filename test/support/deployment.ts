import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { generateApiKey } from "../../runtime/api-key.ts";
import { Child } from "./child.ts";
import { freePort } from "./ports.ts";
import type { ServiceName } from "./program.ts";

const MAIN = join(import.meta.dirname, "../../main.ts");

export interface DeploymentOptions {
  databaseUrl: string;
  /** Shared by all roles: keys, tokens and their logs. */
  dataDir: string;
  /** How many orchestrators; one leads. */
  orchestrators?: number;
  gateways?: number;
  /** How many sandbox services; where there are two, gateways ask the one and what works behind them the other. */
  sandboxes?: number;
  billings?: number;
  /** The program of an orchestrator, in place of `main.ts orchestrator`. */
  orchestratorProgram?: readonly string[];
  /** Of every role, which then call each other by TLS. */
  tls?: { cert: string; key: string; ca: string };
  /** For every role. */
  env?: Record<string, string>;
  /** Starts roles again that end by themselves. */
  supervised?: boolean;
}

/** Every role in a process of its own, none started yet. */
export interface Deployment {
  /** Of the first gateway. */
  url: string;
  /** Of all gateways. */
  urls: string[];
  /** Where the organization role takes calls. */
  organizationUrl: string;
  /** Where the first of each service takes calls, such as `127.0.0.1:40124`. */
  rpc: Record<ServiceName, string>;
  /** Of the first organization. */
  apiKey: string;
  gateway: Child;
  gateways: Child[];
  /** The one that the first gateway asks. */
  sandbox: Child;
  sandboxes: Child[];
  organization: Child;
  /** The one that gateways ask. */
  billing: Child;
  billings: Child[];
  orchestrators: Child[];
  all: Child[];
  /** Whether every gateway says that it can serve. */
  isReady(): Promise<boolean>;
  /** Kills what is left. */
  close(): Promise<void>;
}

export async function createDeployment(options: DeploymentOptions): Promise<Deployment> {
  const { orchestratorProgram = [MAIN, "orchestrator"] } = options;
  const remote = (at: number | undefined) =>
    options.tls ? local(at).replace("http:", "https:") : local(at);
  const [organizationPort] = await freePorts(1);
  const sandboxPorts = await freePorts(options.sandboxes ?? 1);
  const sandboxOf = (at: number) => remote(sandboxPorts[at % sandboxPorts.length]);
  const orchestratorPorts = await freePorts(options.orchestrators ?? 1);
  const billingPorts = await freePorts(options.billings ?? 1);
  const ports = await freePorts(options.gateways ?? 1);
  const apiKey = generateApiKey();
  const secretsKey = randomBytes(32).toString("hex");
  const service = (name: string, i: number, at: number | undefined, program: readonly string[]) =>
    role(options, name, program, {
      RPC_PORT: String(at),
      SECRETS_KEY: secretsKey,
      DATABASE_URL: options.databaseUrl,
      SANDBOX_URL: sandboxOf(i + 1),
      BOOTSTRAP_API_KEY: apiKey,
    });
  const sandboxes = sandboxPorts.map((at, i) =>
    service(numbered("sandbox", i), i, at, [MAIN, "sandbox"]),
  );
  const organization = service("organization", 0, organizationPort, [MAIN, "organization"]);
  const billings = billingPorts.map((at, i) =>
    service(numbered("billing", i), i, at, [MAIN, "billing"]),
  );
  const orchestrators = orchestratorPorts.map((at, i) =>
    service(`orchestrator-${i + 1}`, i, at, orchestratorProgram),
  );
  const gateways = ports.map((at, i) =>
    role(options, numbered("gateway", i), [MAIN, "gateway"], {
      PORT: String(at),
      SANDBOX_URL: sandboxOf(i),
      ORGANIZATION_URL: remote(organizationPort),
      ORCHESTRATOR_URL: remote(orchestratorPorts[0]),
      BILLING_URL: remote(billingPorts[0]),
    }),
  );
  const all = [organization, ...sandboxes, ...billings, ...orchestrators, ...gateways];
  const urls = ports.map(local);
  const close = async () => {
    await Promise.all(all.map((child) => child.kill()));
  };
  return {
    url: first(urls),
    urls,
    organizationUrl: remote(organizationPort),
    rpc: {
      sandbox: hostOf(sandboxPorts[0]),
      organization: hostOf(organizationPort),
      orchestrator: hostOf(orchestratorPorts[0]),
      billing: hostOf(billingPorts[0]),
    },
    apiKey,
    gateway: first(gateways),
    gateways,
    sandbox: first(sandboxes),
    sandboxes,
    organization,
    billing: first(billings),
    billings,
    orchestrators,
    all,
    isReady: async () => (await Promise.all(urls.map(isReady))).every(Boolean),
    close,
  };
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

function local(port: number | undefined): string {
  return `http://${hostOf(port)}`;
}

function hostOf(port: number | undefined): string {
  return `127.0.0.1:${port}`;
}

function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}

function numbered(name: string, i: number): string {
  return i === 0 ? name : `${name}-${i + 1}`;
}

function first<T>(all: readonly T[]): T {
  const [one] = all;
  if (one === undefined) throw new Error("there is none");
  return one;
}

function role(
  { dataDir, env, tls, supervised = false }: DeploymentOptions,
  name: string,
  program: readonly string[],
  own: Record<string, string>,
): Child {
  return new Child({
    name,
    command: [process.execPath, ...program],
    env: {
      DATA_DIR: dataDir,
      ENGINE: "simulated",
      LOG_LEVEL: "warn",
      ...own,
      ...tlsEnv(tls),
      ...env,
    },
    log: join(dataDir, `${name}.log`),
    supervised,
  });
}

function tlsEnv(tls: DeploymentOptions["tls"]): Record<string, string> {
  return tls ? { TLS_CERT: tls.cert, TLS_KEY: tls.key, TLS_CA: tls.ca } : {};
}
