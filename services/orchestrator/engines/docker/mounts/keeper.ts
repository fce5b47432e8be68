import { EngineFailure } from "../../engine.ts";
import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import { gateFor } from "../gate/gate-bytes.ts";
import type { Rehearsal } from "../gate/held-container.ts";
import { type GateOptions, obstacleTo } from "../gate/obstacle.ts";
import { Verdict } from "../gate/verdict.ts";
import { rehearseImages } from "./rehearse-images.ts";
import { rehearseMounts } from "./rehearse-mounts.ts";

/** Whether sandboxes can have volumes here. */
export interface Mounting {
  possible: boolean;
  /** A sentence for the operator. */
  why: string;
  /** The same of disk images; undefined: the operator has not accepted them, or no volumes can be mounted at all. */
  images?: { possible: boolean; why: string };
}

/** Knows whether volumes can be mounted, and has what it takes. */
export interface MountKeeper {
  /** What of services/sandbox/domain/requirements.ts holds by the last look. */
  features(): string[];
  /** Looks (again): really does it, with a container of its own. */
  look(): Promise<Mounting>;
  /** Begins to look, unless the last look found that all of it can be done. */
  lookAgain(): void;
  /**
   * The gate, for a start.
   * @param withImages it is to have disk images too
   * @throws EngineFailure where that cannot be mounted, EngineUnavailable where Docker does not answer
   */
  gate(withImages?: boolean): Promise<Buffer>;
}

export interface MountKeeperOptions extends GateOptions {
  volumes: DirectoryVolumes | undefined;
  /** `loop`: the operator accepts that the host's kernel reads file systems that tenants wrote. */
  diskImages?: "refused" | "loop" | undefined;
  /** See rehearse-mounts.ts; for tests that bring their own. */
  play?: Play;
  /** See rehearse-images.ts; likewise. */
  playImages?: Play;
}

type Play = (volumes: DirectoryVolumes, rehearsal: Rehearsal) => Promise<void>;

const MOUNTS = ["mounts.named", "mounts.bind", "mounts.options", "patches.copy"];

const IMAGES = ["mounts.disk_image"];

export function createMountKeeper(options: MountKeeperOptions): MountKeeper {
  const verdict = new Verdict(() => judge(options));
  const isWhole = ({ possible, images }: Mounting) => possible && images?.possible !== false;
  const mounting = async () =>
    verdict.last && isWhole(verdict.last) ? verdict.last : await verdict.look();
  return {
    features: () => {
      const { possible = false, images } = verdict.last ?? {};
      return [...(possible ? MOUNTS : []), ...(images?.possible ? IMAGES : [])];
    },
    look: () => verdict.look(),
    lookAgain: () => {
      if (!verdict.last || !isWhole(verdict.last)) verdict.look().catch(() => undefined);
    },
    async gate(withImages = false) {
      const { last } = verdict;
      const { possible, why, images } = last?.possible && !withImages ? last : await mounting();
      const gate = gateFor((await options.host()).architecture);
      if (!gate || !possible) throw new EngineFailure(`volumes cannot be mounted here: ${why}`);
      if (withImages && !images?.possible)
        throw new EngineFailure(`disk images cannot be mounted here: ${images?.why ?? REFUSED}`);
      return gate;
    },
  };
}

const REFUSED = "its operator has not accepted them";

async function judge(options: MountKeeperOptions): Promise<Mounting> {
  const { volumes, play = rehearseMounts, playImages = rehearseImages } = options;
  if (!volumes) return { possible: false, why: "there is no folder for them" };
  const obstacle = await obstacleTo(gateOptions(options), (one) => play(volumes, one));
  if (obstacle !== undefined) return { possible: false, why: obstacle };
  const found = { possible: true, why: "by bind mounts, in each sandbox's mount namespace" };
  if (options.diskImages !== "loop") return found;
  const without = await obstacleTo(gateOptions(options), (one) => playImages(volumes, one));
  const why = without ?? "by loop devices of this host";
  return { ...found, images: { possible: without === undefined, why } };
}

function gateOptions({ docker, installationId, host, isLocal, runtime }: GateOptions): GateOptions {
  return { docker, installationId, host, isLocal, runtime };
}
