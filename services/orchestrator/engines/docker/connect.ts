import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { StartupError } from "../../../../runtime/errors.ts";
import { call, DockerError } from "./call.ts";

const PROBE_MS = 2_000;
const SYSTEM_SOCKET = "/var/run/docker.sock";

/** Where the Docker daemon is. */
export interface DockerAddress {
  /** `unix:///path`, `tcp://host:port`, `http://…` or `https://…`; undefined: Docker's default socket. */
  host: string | undefined;
}

/** @throws StartupError for an address of another form */
export function connectDocker({ host }: DockerAddress): Docker {
  // dockerode falls back to the environment for what is absent; undefined here says: not from there.
  return new Docker({ host: undefined, port: undefined, ...target(host ?? defaultDockerHost()) });
}

function target(address: string): Docker.DockerOptions {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  switch (url?.protocol) {
    case "unix:":
      return { socketPath: decodeURIComponent(url.pathname) };
    case "tcp:":
    case "http:":
      return { protocol: "http", host: url.hostname, port: url.port || 2375 };
    case "https:":
      return { protocol: "https", host: url.hostname, port: url.port || 2376 };
    default:
      throw new StartupError(`DOCKER_HOST '${address}' is neither unix://, tcp://, nor http(s)://`);
  }
}

/** The system's socket, or the one that Docker Desktop keeps in the user's home. */
export function defaultDockerHost(): string {
  const ofUser = join(homedir(), ".docker/run/docker.sock");
  return `unix://${!existsSync(SYSTEM_SOCKET) && existsSync(ofUser) ? ofUser : SYSTEM_SOCKET}`;
}

/**
 * Asks whether a usable daemon answers, for a second or two at most.
 * @returns `why`: a sentence for the operator, for either answer
 */
export async function probeDocker(address: DockerAddress): Promise<{ ok: boolean; why: string }> {
  const where = address.host ?? defaultDockerHost();
  try {
    const docker = connectDocker(address);
    const version = await call(() => docker.version(), { timeoutMs: PROBE_MS });
    if (version.Os !== "linux")
      return { ok: false, why: `the Docker daemon at ${where} runs ${version.Os} containers` };
    return { ok: true, why: `Docker ${version.Version} answers at ${where}` };
  } catch (error) {
    return { ok: false, why: `no Docker at ${where}: ${reason(error)}` };
  }
}

/**
 * Makes sure that a daemon knows the OCI runtime that the operator chose.
 * @throws StartupError naming those that it knows
 */
export async function checkRuntime(address: DockerAddress, runtime: string): Promise<void> {
  const docker = connectDocker(address);
  const info: { Runtimes?: Record<string, unknown> } = await call(() => docker.info(), {
    timeoutMs: PROBE_MS,
  }).catch((error: unknown) => {
    throw new StartupError(`Docker does not say which runtimes it has: ${reason(error)}`);
  });
  const known = Object.keys(info.Runtimes ?? {});
  if (known.includes(runtime)) return;
  const list = known.toSorted().join(", ");
  throw new StartupError(
    `DOCKER_RUNTIME is '${runtime}', and Docker has no runtime of that name; it has ${list}`,
  );
}

const REASONS: Record<string, string> = {
  ENOENT: "there is no such socket",
  EACCES: "this user may not open it; add the user to the group `docker`",
  ECONNREFUSED: "nothing listens there",
};

function reason(error: unknown): string {
  if (error instanceof StartupError || error instanceof DockerError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return REASONS[code] ?? error.message;
}
