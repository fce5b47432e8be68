import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { EngineFailure } from "../../engine.ts";
import type { Credentials } from "./pull.ts";

/** The operator's Docker configuration, as far as it counts here. */
interface DockerConfig {
  auths?: Record<string, { auth?: string; identitytoken?: string }>;
  credHelpers?: Record<string, string>;
  credsStore?: string;
}

/** Under this name `docker login` keeps what is for Docker Hub. */
const HUB_KEY = "https://index.docker.io/v1/";
const HELPER_MS = 10_000;
/** A helper's word for: the secret is an identity token. */
const TOKEN_USER = "<token>";

/**
 * What the operator's own `docker login` left for a registry; read anew each time, for logins come and go.
 * @param directory of `config.json`; undefined: Docker's default
 * @returns undefined: nothing for this registry
 * @throws EngineFailure where there is a configuration that cannot be used
 */
export async function operatorCredentials(
  host: string,
  directory = join(homedir(), ".docker"),
): Promise<Credentials> {
  const config = await readConfig(join(directory, "config.json"));
  const serveraddress = host === "docker.io" ? HUB_KEY : host;
  const helper = config.credHelpers?.[serveraddress] ?? config.credsStore;
  if (helper !== undefined) return await askHelper(helper, serveraddress);
  const entry = Object.entries(config.auths ?? {}).find(
    ([key]) => hostOf(key) === hostOf(serveraddress),
  );
  if (!entry) return undefined;
  const { auth, identitytoken } = entry[1];
  if (identitytoken) return { identitytoken, serveraddress };
  const [, username, password] = /^([^:]*):(.*)$/s.exec(decode(auth ?? "")) ?? [];
  if (!username || password === undefined) return undefined;
  return { username, password, serveraddress };
}

// Old logins are kept under a URL.
function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, "").replace(/\/.*$/, "");
}

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString();
}

async function readConfig(path: string): Promise<DockerConfig> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    // No cause: a syntax error quotes what it found, and here that may be a password.
    throw new EngineFailure("the host's Docker configuration cannot be read; tell its operator");
  }
}

async function askHelper(helper: string, serveraddress: string): Promise<Credentials> {
  const program = `docker-credential-${helper}`;
  try {
    const answer = await runHelper(program, serveraddress);
    if (answer === undefined) return undefined;
    const { Username, Secret }: { Username: string; Secret: string } = JSON.parse(answer);
    if (Username === TOKEN_USER) return { identitytoken: Secret, serveraddress };
    return { username: Username, password: Secret, serveraddress };
  } catch {
    throw new EngineFailure(`the host's ${program} does not work; tell its operator`);
  }
}

// Helpers say on stdout, with a failure, that they know nothing of a registry.
function runHelper(program: string, serveraddress: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, stdout: string) => {
      if (!error) resolve(stdout);
      else if (/credentials not found/i.test(stdout)) resolve(undefined);
      else reject(error);
    };
    const child = execFile(program, ["get"], { timeout: HELPER_MS }, done);
    // A helper that cannot be run is reported above.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(serveraddress);
  });
}
