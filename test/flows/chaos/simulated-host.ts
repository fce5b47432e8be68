import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Child } from "../../support/child.ts";
import type { ChaosOptions } from "./options.ts";
import { createRemoteEngine } from "./remote-engine.ts";
import type { EngineHost } from "./system.ts";

export async function startSimulatedHost(
  dir: string,
  { seed }: Pick<ChaosOptions, "seed">,
): Promise<EngineHost> {
  const socket = join(dir, "engine.sock");
  const ledger = join(dir, "ledger");
  await writeFile(ledger, "");
  const here = (file: string) => join(import.meta.dirname, file);
  const child = new Child({
    name: "engine",
    command: [process.execPath, here("engine-host.ts"), socket, ledger, seed],
    env: {},
    log: join(dir, "engine.log"),
    supervised: true,
  });
  child.start();
  const engine = createRemoteEngine(socket);
  return {
    child,
    connect: async () => engine,
    setAvailable: engine.setAvailable,
    env: {},
    program: [here("orchestrator.ts"), socket],
    spec: {
      image: { type: "oci", reference: "alpine" },
      resources: { vcpus: 1, memory_mib: 64 },
    },
    ledger,
    close: async () => {
      await child.kill();
    },
  };
}
