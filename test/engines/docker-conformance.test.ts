import type { Allocation } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { describeConformance } from "./conformance.ts";
import { useVolumes } from "./docker-volume-harness.ts";
import { WRITTEN } from "./logs-conformance.ts";

describeWithDocker("docker engine: conformance", ({ host }) => {
  const { engine, start, run } = useVolumes(host, [IMAGES.busybox, IMAGES.noShell], []);
  describeConformance(async () => ({
    // On which what it claims depends.
    engine: await engine.mounting().then(() => engine),
    // Its command is the machine.
    thatEnds: (allocation) => withSpec(allocation, { image: IMAGES.noShell.name, cmd: ["0.2"] }),
    thatFails: (allocation) => withSpec(allocation, { cmd: ["no-such-program"] }),
    thatClings: (allocation) =>
      withSpec(allocation, { cmd: ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"] }),
    startWriting: (allocation) => start(withSpec(allocation, { cmd: ["sh", "-c", WRITE] })),
    shell: (allocation, script) => run(allocation, "sh", "-c", script),
    close: async () => undefined,
  }));
});

// It goes on, for its end would be a line of its own.
const WRITE = WRITTEN.map(
  ({ stream, text }) => `printf '%s' '${text}'${stream === "stderr" ? " >&2" : ""}`,
)
  .concat("exec sleep 1000")
  .join("; ");

function withSpec(
  allocation: Allocation,
  { cmd, image = allocation.spec.image }: { cmd: string[]; image?: string },
): Allocation {
  const { spec } = allocation;
  return { ...allocation, spec: { ...spec, image, runtime: { ...spec.runtime, cmd } } };
}
