import type { EngineSpec } from "../engine.ts";

/** The parts of an image's configuration that a start needs. */
export interface ImageConfig {
  id: string;
  entrypoint: string[];
  cmd: string[];
  /** As `KEY=value`. */
  env: string[];
  /** Empty: root. */
  user: string;
  /** Names alone: what they say is for whoever looks at images. */
  labels: string[];
  /** It was not on this host before, or may not have been the same. */
  pulled: boolean;
}

/**
 * The command that a sandbox runs; empty: it idles. The image's own command counts only where the spec
 * overrides the other half of it. Pure.
 */
export function workloadOf(runtime: EngineSpec["runtime"], image: ImageConfig): string[] {
  const { cmd, entrypoint } = runtime;
  if (cmd === null && entrypoint === null) return [];
  const imageCmd = entrypoint === null ? image.cmd : [];
  return [...(entrypoint ?? image.entrypoint), ...(cmd ?? imageCmd)];
}

/**
 * Whether only the image could tell that there is nothing to run: `cmd` is [] and the image has no entrypoint. From the spec
 * alone nobody knows that such a sandbox idles. Pure.
 */
export function turnedOutEmpty(runtime: EngineSpec["runtime"], workload: string[]): boolean {
  return workload.length === 0 && runtime.entrypoint === null && runtime.cmd !== null;
}

/** What an image without a shell runs as the machine itself; empty: there is nothing to run. Pure. */
export function directCommand(runtime: EngineSpec["runtime"], image: ImageConfig): string[] {
  const overridden = runtime.cmd !== null || runtime.entrypoint !== null;
  return overridden ? workloadOf(runtime, image) : [...image.entrypoint, ...image.cmd];
}
