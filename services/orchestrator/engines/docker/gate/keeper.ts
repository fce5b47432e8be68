import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { EngineFailure, EngineUnavailable } from "../../engine.ts";
import type { DockerHost } from "../context.ts";
import { gateFor } from "./gate-bytes.ts";
import { rehearse } from "./rehearse.ts";

/** Whether network policies are kept here. */
export interface Enforcement {
  enforced: boolean;
  /** A sentence for the operator. */
  why: string;
}

/** Knows whether network policies can be kept, and has what it takes. */
export interface PolicyKeeper {
  /** False: the operator accepts that they are not kept. */
  readonly demanded: boolean;
  /** What of services/sandbox/domain/requirements.ts holds by the last look. */
  features(): string[];
  /** Looks (again): really does it, with a container of its own, and makes anew what is missing for it. */
  look(): Promise<Enforcement>;
  /** Begins to look, where the last look found that they cannot be kept. */
  lookAgain(): void;
  /**
   * The gate, for a start.
   * @throws EngineFailure where policies cannot be kept, EngineUnavailable where Docker does not answer
   */
  gate(): Promise<Buffer>;
}

export interface KeeperOptions {
  docker: Docker;
  installationId: string;
  host: () => Promise<DockerHost>;
  demanded: boolean;
  /** The daemon is reached by a socket of this machine. */
  isLocal: boolean;
  runtime: string | undefined;
  /** See rehearse.ts; for tests that bring their own. */
  play?: typeof rehearse;
}

/** What failed once may only have been cut off with its daemon. */
const AGAIN_MS = 1_000;
const ENFORCED = ["network", "network.policy", "network.max_connections"];
const ACCEPTED = ["network", "network.policy"];

export function createPolicyKeeper(options: KeeperOptions): PolicyKeeper {
  let last: Enforcement | undefined;
  let looking: Promise<Enforcement> | undefined;
  const look = () => {
    looking ??= judge(options)
      .then((verdict) => {
        last = verdict;
        return verdict;
      })
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };
  return {
    demanded: options.demanded,
    features: () => {
      if (!options.demanded) return ACCEPTED;
      return last?.enforced ? ENFORCED : [];
    },
    look,
    lookAgain: () => {
      if (options.demanded && last?.enforced === false) look().catch(() => undefined);
    },
    async gate() {
      const gate = gateFor((await options.host()).architecture);
      if (gate && !options.demanded) return gate;
      const { enforced, why } = last?.enforced ? last : await look();
      if (gate && enforced) return gate;
      throw new EngineFailure(`network policies cannot be enforced here: ${why}`);
    },
  };
}

async function judge(options: KeeperOptions): Promise<Enforcement> {
  if (!options.demanded) return { enforced: false, why: "DOCKER_NETWORK_POLICY=unenforced" };
  const obstacle = await obstacleOf(options);
  if (obstacle !== undefined) return { enforced: false, why: obstacle };
  return { enforced: true, why: "by nftables, in each sandbox's network namespace" };
}

/** @throws EngineUnavailable: then nothing is known */
async function obstacleOf({
  isLocal,
  play = rehearse,
  ...options
}: KeeperOptions): Promise<string | undefined> {
  if (process.platform !== "linux") return "Sandgate does not run on Linux";
  if (!isLocal) return "the Docker daemon is not on this machine, or not reached by its socket";
  if (process.getuid?.() !== 0) return "Sandgate does not run as root";
  const { architecture, hasInit } = await options.host();
  const gate = gateFor(architecture);
  if (!gate) return `there is no gate for ${architecture}`;
  const tried = () => obstacleTo(() => play({ ...options, gate, hasInit }));
  if ((await tried()) === undefined) return undefined;
  await sleep(AGAIN_MS);
  return await tried();
}

async function obstacleTo(play: () => Promise<void>): Promise<string | undefined> {
  try {
    await play();
    return undefined;
  } catch (error) {
    if (error instanceof EngineUnavailable) throw error;
    return reason(error);
  }
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isMissing = "code" in error && error.code === "ENOENT" && "path" in error;
  return isMissing ? `there is no program ${error.path}` : error.message;
}
