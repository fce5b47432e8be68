import type { Config } from "../runtime/config.ts";
import { readConfig } from "../runtime/env.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import {
  type Check,
  type Facts,
  fail,
  ok,
  type Question,
  withoutCredentials,
} from "./doctor/check.ts";
import { askDataDir } from "./doctor/data-dir.ts";
import { askDatabase } from "./doctor/database.ts";
import { askEngine } from "./doctor/engine.ts";
import { askNetwork } from "./doctor/network.ts";
import { askVolumes } from "./doctor/volumes.ts";

export type { Check } from "./doctor/check.ts";

export interface ExamineOptions {
  env: NodeJS.ProcessEnv;
  /** Ends what is opened for the look. */
  lifecycle: Lifecycle;
  /** URL of an RPC port to be asked too. */
  server: string | undefined;
}

/**
 * Looks at settings, files, database, engine and what listens, and changes none of it. Only a PostgreSQL of our own
 * that does not run is started for the while.
 * @returns what was found, in the order in which it is best mended; no secret is in it
 */
export async function examine({ env, lifecycle, server }: ExamineOptions): Promise<Check[]> {
  const { config, checks } = readSettings(env);
  if (config) {
    const parts: Question[] = [askDataDir, askDatabase, askVolumes, askEngine, askNetwork];
    const facts: Facts = {};
    for (const ask of parts) checks.push(...(await ask({ config, lifecycle, server, facts })));
  }
  return checks.map(withoutCredentials);
}

function readSettings(env: NodeJS.ProcessEnv): { config?: Config; checks: Check[] } {
  try {
    return { config: readConfig(env), checks: [ok("settings", "all of them can be used")] };
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    const mend = "correct these variables of the environment; nothing else was looked at";
    return { checks: [fail("settings", error.message, mend)] };
  }
}
