import type { Database } from "../prisma/database.ts";
import type { EngineConfig } from "../runtime/config.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Logger } from "../runtime/log.ts";
import { checkRuntime, probeDocker } from "../services/orchestrator/engines/docker/connect.ts";
import {
  createDockerEngine,
  type DockerEngine,
} from "../services/orchestrator/engines/docker/docker-engine.ts";
import type { Mounting } from "../services/orchestrator/engines/docker/mounts/keeper.ts";
import { type Engine, EngineUnavailable } from "../services/orchestrator/engines/engine.ts";
import { createSimulatedEngine } from "../services/orchestrator/engines/simulated.ts";
import type { VolumeStore } from "../services/orchestrator/engines/volume-store.ts";
import {
  createDirectoryVolumes,
  type DirectoryVolumes,
} from "../services/orchestrator/engines/volumes/directory-volumes.ts";
import {
  ForeignFolder,
  markVolumes,
} from "../services/orchestrator/engines/volumes/marked-volumes.ts";
import { createStore } from "../services/orchestrator/store.ts";
import { FEATURES } from "../services/sandbox/domain/requirements.ts";

export interface ChosenEngine {
  engine: Engine;
  /** A sentence for the operator. */
  why: string;
  /** How network policies are kept; undefined: nothing runs that could break one. */
  network: NetworkEnforcement | undefined;
  /** Whether sandboxes can have volumes; undefined: nothing runs that could. */
  volumes?: Mounting;
}

export interface NetworkEnforcement {
  /** `accepted`: not kept, as the operator wants it; `impossible`: refused, so no sandbox has a network. */
  state: "enforced" | "accepted" | "impossible";
  /** A sentence for the operator. */
  why: string;
}

/** What runs the machines does not answer, or went away while it was asked what it can do. */
export class EngineAway extends StartupError {}

/**
 * The engine that the settings ask for; `auto` takes docker when it answers.
 * @throws EngineAway where docker was asked for, or has led here before, and does not answer, or goes away meanwhile
 * @throws StartupError where it has not the runtime that was asked for
 */
export async function chooseEngine(
  config: EngineConfig,
  database: Database,
  log: Logger,
): Promise<ChosenEngine> {
  const volumes = volumesIn(config.volumesDir, database);
  if (config.choice === "simulated") {
    const why = "ENGINE=simulated asks for it";
    return { engine: await simulated(database, volumes), why, network: undefined };
  }
  const docker = {
    host: config.dockerHost,
    networkPolicy: config.dockerNetworkPolicy,
    diskImages: config.dockerDiskImages,
    runtime: config.dockerRuntime,
  };
  const { ok, why } = await probeDocker(docker);
  if (ok) {
    if (docker.runtime !== undefined) await checkRuntime(docker, docker.runtime);
    const installationId = await createStore(database).installationId();
    const engine = createDockerEngine({ installationId, docker, log, volumes });
    // Before its features are published, of which these are a part.
    const network = await enforcementOf(engine, config);
    return { engine, why, network, volumes: await tried(() => mountingOf(engine)) };
  }
  if (config.choice === "docker") throw new EngineAway(`ENGINE=docker, but ${why}`);
  if (await hasRunOn("docker", database))
    throw new EngineAway(
      `${why}, and this installation's sandboxes are there; start Docker, or set ENGINE=simulated`,
    );
  return { engine: await simulated(database, volumes), why, network: undefined };
}

/** Volumes in a folder of this host, as long as it is this installation's. */
function volumesIn(root: string, database: Database): DirectoryVolumes {
  const { readVolumesMark, claimVolumesMark } = createStore(database);
  const record = { read: readVolumesMark, claim: claimVolumesMark };
  return markVolumes(createDirectoryVolumes({ root }), root, record);
}

async function enforcementOf(
  engine: DockerEngine,
  config: EngineConfig,
): Promise<NetworkEnforcement> {
  if (config.dockerNetworkPolicy === "unenforced")
    return { state: "accepted", why: "DOCKER_NETWORK_POLICY=unenforced" };
  const { enforced, why } = await tried(engine.enforcement);
  return { state: enforced ? "enforced" : "impossible", why };
}

// A disk that is not mounted is no reason to refuse sandboxes without volumes.
async function mountingOf(engine: DockerEngine): Promise<Mounting> {
  try {
    return await engine.mounting();
  } catch (error) {
    if (error instanceof ForeignFolder) return { possible: false, why: error.message };
    throw error;
  }
}

async function tried<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof EngineUnavailable)) throw error;
    // Nothing is known then, and to publish that as impossible would refuse sandboxes that can be had.
    throw new EngineAway(
      `Docker went away while it was found out what it can do: ${error.message}`,
    );
  }
}

// `auto` must not take sandboxes that are real for simulated ones because Docker starts later.
async function hasRunOn(name: string, database: Database): Promise<boolean> {
  const engines = await createStore(database).listEngines();
  return engines.some((engine) => engine.name === name);
}

// Its machines are only in memory; the database knows which were up when the last process ended.
// Nothing runs there, but what is put into its volumes is kept.
async function simulated(database: Database, volumes: VolumeStore): Promise<Engine> {
  const initial = await createStore(database).listBelieved();
  return createSimulatedEngine({ features: FEATURES, initial, volumes });
}
