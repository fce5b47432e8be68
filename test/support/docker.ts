import { existsSync } from "node:fs";
import { describe, inject } from "vitest";
import {
  defaultDockerHost,
  probeDocker,
} from "../../services/orchestrator/engines/docker/connect.ts";
import { DOCKERD, startDockerDaemon } from "./docker-daemon.ts";

/** The Docker daemon of a test run. */
export type TestDocker =
  | {
      available: true;
      /** As in DOCKER_HOST. */
      host: string;
      /** Path of the network namespace that it is in; null: this process's own. */
      network: string | null;
    }
  | { available: false; why: string };

declare module "vitest" {
  interface ProvidedContext {
    docker: TestDocker;
  }
}

const BUSYBOX = "/bin/busybox";

/**
 * For vitest's global setup: takes the Docker daemon that answers, or starts one of its own where it can. What it finds is for
 * `project.provide("docker", …)`.
 * @throws Error when there is none and SANDGATE_REQUIRE_DOCKER is set
 */
export async function setupDocker(
  env: NodeJS.ProcessEnv,
): Promise<{ docker: TestDocker; teardown: () => Promise<void> }> {
  const found = await findOrStart(env.DOCKER_HOST || undefined);
  if (found.docker.available) return found;
  if (env.SANDGATE_REQUIRE_DOCKER === "1") throw new Error(found.docker.why);
  console.warn(`\n  Tests that need Docker are SKIPPED: ${found.docker.why}\n`);
  return found;
}

async function findOrStart(
  host: string | undefined,
): Promise<{ docker: TestDocker; teardown: () => Promise<void> }> {
  const without = (why: string) => ({ docker: { available: false, why } as const, teardown });
  const teardown = async () => undefined;
  if (!existsSync(BUSYBOX)) return without(`${BUSYBOX} (busybox-static) is not installed`);
  const found = host ?? defaultDockerHost();
  const { ok, why } = await probeDocker({ host: found });
  if (ok) return { docker: { available: true, host: found, network: null }, teardown };
  if (host !== undefined) return without(why);
  if (!existsSync(DOCKERD)) return without(`${why}, and ${DOCKERD} is not installed`);
  if (process.getuid?.() !== 0) return without(`${why}, and only root can start ${DOCKERD}`);
  try {
    const daemon = await startDockerDaemon();
    const { host, network } = daemon;
    return { docker: { available: true, host, network }, teardown: daemon.stop };
  } catch (error) {
    return without(String(error));
  }
}

/** A suite that needs Docker; without one it is skipped by its name, with the reason. */
export function describeWithDocker(
  name: string,
  suite: (docker: TestDocker & { available: true }) => void,
): void {
  const docker = inject("docker");
  if (docker.available) describe(name, () => suite(docker));
  else describe.skip(`${name} [skipped: ${docker.why}]`, () => suite(NO_DOCKER));
}

// Lets a skipped suite name its tests; none of them is run.
const NO_DOCKER = { available: true, host: "unix:///nonexistent", network: null } as const;
