import type { ChaosOptions } from "./options.ts";
import type { EngineHost } from "./system.ts";

export async function startDockerHost(_dir: string, _options: ChaosOptions): Promise<EngineHost> {
  throw new Error("not yet");
}
