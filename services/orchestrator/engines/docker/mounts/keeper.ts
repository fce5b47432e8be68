import { EngineFailure } from "../../engine.ts";
import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import { gateFor } from "../gate/gate-bytes.ts";
import type { Rehearsal } from "../gate/held-container.ts";
import { type GateOptions, obstacleTo } from "../gate/obstacle.ts";
import { Verdict } from "../gate/verdict.ts";
import { rehearseMounts } from "./rehearse-mounts.ts";

/** Whether sandboxes can have volumes here. */
export interface Mounting {
  possible: boolean;
  /** A sentence for the operator. */
  why: string;
}

/** Knows whether volumes can be mounted, and has what it takes. */
export interface MountKeeper {
  /** What of services/sandbox/domain/requirements.ts holds by the last look. */
  features(): string[];
  /** Looks (again): really does it, with a container of its own. */
  look(): Promise<Mounting>;
  /** Begins to look, unless the last look found that it can be done. */
  lookAgain(): void;
  /**
   * The gate, for a start.
   * @throws EngineFailure where volumes cannot be mounted, EngineUnavailable where Docker does not answer
   */
  gate(): Promise<Buffer>;
}

export interface MountKeeperOptions extends GateOptions {
  volumes: DirectoryVolumes | undefined;
  /** See rehearse-mounts.ts; for tests that bring their own. */
  play?: (volumes: DirectoryVolumes, rehearsal: Rehearsal) => Promise<void>;
}

const MOUNTS = ["mounts.named", "mounts.bind", "mounts.options", "patches.copy"];

export function createMountKeeper(options: MountKeeperOptions): MountKeeper {
  const verdict = new Verdict(() => judge(options));
  return {
    features: () => (verdict.last?.possible ? MOUNTS : []),
    look: () => verdict.look(),
    lookAgain: () => {
      if (!verdict.last?.possible) verdict.look().catch(() => undefined);
    },
    async gate() {
      const { last } = verdict;
      const { possible, why } = last?.possible ? last : await verdict.look();
      const gate = gateFor((await options.host()).architecture);
      if (gate && possible) return gate;
      throw new EngineFailure(`volumes cannot be mounted here: ${why}`);
    },
  };
}

async function judge({
  volumes,
  play = rehearseMounts,
  ...options
}: MountKeeperOptions): Promise<Mounting> {
  if (!volumes) return { possible: false, why: "there is no folder for them" };
  const obstacle = await obstacleTo(options, (rehearsal) => play(volumes, rehearsal));
  if (obstacle !== undefined) return { possible: false, why: obstacle };
  return { possible: true, why: "by bind mounts, in each sandbox's mount namespace" };
}
