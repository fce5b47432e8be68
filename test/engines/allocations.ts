import { v7 as uuid } from "uuid";
import type { Allocation, EngineSpec } from "../../services/orchestrator/engines/engine.ts";
import { IMAGES } from "../support/images.ts";

/** What a test changes of a plain spec. */
export type SpecChanges = Partial<Omit<EngineSpec, "runtime" | "network">> & {
  runtime?: Partial<EngineSpec["runtime"]>;
  network?: Partial<EngineSpec["network"]>;
};

/** A start of a small sandbox that idles. */
export function allocate(
  { runtime, network, ...changes }: SpecChanges = {},
  rest: Partial<Omit<Allocation, "spec">> = {},
): Allocation {
  const ownRuntime = {
    cmd: null,
    entrypoint: null,
    shell: null,
    user: null,
    workdir: null,
    logLevel: null,
    scripts: {},
  };
  return {
    sandboxId: uuid(),
    orgId: uuid(),
    generation: 1,
    name: "brave-otter-42",
    registry: { mode: "anonymous" },
    patches: [],
    volumes: {},
    ...rest,
    spec: {
      image: IMAGES.busybox.name,
      resources: { vcpus: 1, memoryMib: 64, diskSizeMib: null },
      runtime: { ...ownRuntime, ...runtime },
      env: [],
      labels: {},
      rlimits: [],
      mounts: [],
      network: { enabled: false, policy: null, maxConnections: null, ...network },
      lifecycle: { idleTimeoutSecs: null },
      init: null,
      pullPolicy: "if_missing",
      securityProfile: "default",
      ...changes,
    },
  };
}

/** The next start of the same sandbox. */
export function nextStart(allocation: Allocation): Allocation {
  return { ...allocation, generation: allocation.generation + 1 };
}

/** A signal that is never aborted. */
export const UNHURRIED = new AbortController().signal;
