import { join } from "node:path";
import { generateApiKey } from "../../runtime/api-key.ts";
import { Child } from "./child.ts";
import { freePort } from "./ports.ts";

const MAIN = join(import.meta.dirname, "../../main.ts");

export interface DeploymentOptions {
  databaseUrl: string;
  /** Shared by all roles: keys, tokens and their logs. */
  dataDir: string;
  /** How many orchestrators; one leads. */
  orchestrators?: number;
  /** The program of an orchestrator, in place of `main.ts orchestrator`. */
  orchestratorProgram?: readonly string[];
  /** For every role. */
  env?: Record<string, string>;
  /** Starts roles again that end by themselves. */
  supervised?: boolean;
}

/** Every role in a process of its own, none started yet. */
export interface Deployment {
  url: string;
  /** Of the first organization. */
  apiKey: string;
  gateway: Child;
  sandbox: Child;
  organization: Child;
  billing: Child;
  orchestrators: Child[];
  all: Child[];
  /** Whether the gateway says that it can serve. */
  isReady(): Promise<boolean>;
  /** Kills what is left. */
  close(): Promise<void>;
}

export async function createDeployment(options: DeploymentOptions): Promise<Deployment> {
  const { orchestrators: count = 1, orchestratorProgram = [MAIN, "orchestrator"] } = options;
  const [port, sandboxPort, organizationPort, billingPort, ...orchestratorPorts] =
    await Promise.all(Array.from({ length: 4 + count }, freePort));
  const apiKey = generateApiKey();
  const local = (at: number | undefined) => `http://127.0.0.1:${at}`;
  const service = (name: string, at: number | undefined, program: readonly string[]) =>
    role(options, name, program, {
      RPC_PORT: String(at),
      DATABASE_URL: options.databaseUrl,
      SANDBOX_URL: local(sandboxPort),
      BOOTSTRAP_API_KEY: apiKey,
    });
  const sandbox = service("sandbox", sandboxPort, [MAIN, "sandbox"]);
  const organization = service("organization", organizationPort, [MAIN, "organization"]);
  const billing = service("billing", billingPort, [MAIN, "billing"]);
  const orchestrators = orchestratorPorts.map((at, i) =>
    service(`orchestrator-${i + 1}`, at, orchestratorProgram),
  );
  const gateway = role(options, "gateway", [MAIN, "gateway"], {
    PORT: String(port),
    SANDBOX_URL: local(sandboxPort),
    ORGANIZATION_URL: local(organizationPort),
    ORCHESTRATOR_URL: local(orchestratorPorts[0]),
    BILLING_URL: local(billingPort),
  });
  const all = [organization, sandbox, billing, ...orchestrators, gateway];
  const url = local(port);
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  const close = async () => {
    await Promise.all(all.map((child) => child.kill()));
  };
  return {
    url,
    apiKey,
    gateway,
    sandbox,
    organization,
    billing,
    orchestrators,
    all,
    isReady,
    close,
  };
}

function role(
  { dataDir, env, supervised = false }: DeploymentOptions,
  name: string,
  program: readonly string[],
  own: Record<string, string>,
): Child {
  return new Child({
    name,
    command: [process.execPath, ...program],
    env: { DATA_DIR: dataDir, ENGINE: "simulated", LOG_LEVEL: "warn", ...own, ...env },
    log: join(dataDir, `${name}.log`),
    supervised,
  });
}
