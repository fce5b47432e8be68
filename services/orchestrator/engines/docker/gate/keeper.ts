import { EngineFailure } from "../../engine.ts";
import { gateFor } from "./gate-bytes.ts";
import { type GateOptions, obstacleTo } from "./obstacle.ts";
import { rehearse } from "./rehearse.ts";
import { Verdict } from "./verdict.ts";

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

export interface KeeperOptions extends GateOptions {
  demanded: boolean;
  /** See rehearse.ts; for tests that bring their own. */
  play?: typeof rehearse;
}

const ENFORCED = ["network", "network.policy", "network.max_connections"];
const ACCEPTED = ["network", "network.policy"];

export function createPolicyKeeper(options: KeeperOptions): PolicyKeeper {
  const verdict = new Verdict(() => judge(options));
  const look = () => verdict.look();
  return {
    demanded: options.demanded,
    features: () => {
      if (!options.demanded) return ACCEPTED;
      return verdict.last?.enforced ? ENFORCED : [];
    },
    look,
    lookAgain: () => {
      if (options.demanded && verdict.last?.enforced === false) look().catch(() => undefined);
    },
    async gate() {
      const gate = gateFor((await options.host()).architecture);
      if (gate && !options.demanded) return gate;
      const { last } = verdict;
      const { enforced, why } = last?.enforced ? last : await look();
      if (gate && enforced) return gate;
      throw new EngineFailure(`network policies cannot be enforced here: ${why}`);
    },
  };
}

async function judge({
  demanded,
  play = rehearse,
  ...options
}: KeeperOptions): Promise<Enforcement> {
  if (!demanded) return { enforced: false, why: "DOCKER_NETWORK_POLICY=unenforced" };
  const obstacle = await obstacleTo(options, play);
  if (obstacle !== undefined) return { enforced: false, why: obstacle };
  return { enforced: true, why: "by nftables, in each sandbox's network namespace" };
}
