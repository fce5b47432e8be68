import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { EngineUnavailable } from "../../engine.ts";
import type { DockerHost } from "../context.ts";
import { gateFor } from "./gate-bytes.ts";
import type { Rehearsal } from "./held-container.ts";

export interface GateOptions {
  docker: Docker;
  installationId: string;
  host: () => Promise<DockerHost>;
  /** The daemon is reached by a socket of this machine. */
  isLocal: boolean;
  runtime: string | undefined;
}

/** What failed once may only have been cut off with its daemon. */
const AGAIN_MS = 1_000;

/**
 * Why what takes a gate cannot be had here, found out by doing it.
 * @returns undefined: it can
 * @throws EngineUnavailable: then nothing is known
 */
export async function obstacleTo(
  { isLocal, host, ...options }: GateOptions,
  play: (rehearsal: Rehearsal) => Promise<void>,
): Promise<string | undefined> {
  if (process.platform !== "linux") return "Sandgate does not run on Linux";
  if (!isLocal) return "the Docker daemon is not on this machine, or not reached by its socket";
  if (process.getuid?.() !== 0) return "Sandgate does not run as root";
  const { architecture, hasInit } = await host();
  const gate = gateFor(architecture);
  if (!gate) return `there is no gate for ${architecture}`;
  const tried = () => failureOf(() => play({ ...options, gate, hasInit }));
  if ((await tried()) === undefined) return undefined;
  await sleep(AGAIN_MS);
  return await tried();
}

async function failureOf(play: () => Promise<void>): Promise<string | undefined> {
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
