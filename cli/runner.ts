import type { Command } from "commander";
import pino from "pino";
import { type Config, readConfig } from "../runtime/env.ts";
import { Lifecycle } from "../runtime/lifecycle.ts";
import { createLogger, type Logger } from "../runtime/log.ts";
import { type Api, openApi } from "./api.ts";
import { type Output, print } from "./output.ts";

/** Options that every command takes. */
export interface GlobalOptions {
  json?: boolean;
  server?: string;
  billingServer?: string;
}

/** What commander hands to an action behind a command's own arguments and options. */
type Action = (...given: unknown[]) => Promise<void>;

/** Turns what a command does into what commander calls. */
export interface Runner {
  /** With a connection, open until the command is done. */
  call<A extends unknown[]>(work: (api: Api, ...given: A) => Promise<Output>): Action;
  /** Without one. */
  look(work: (env: NodeJS.ProcessEnv, options: GlobalOptions) => Promise<Output>): Action;
}

const END_MS = 10_000;

/** @param outcome where the exit code of a command goes that ran */
export function createRunner(env: NodeJS.ProcessEnv, outcome: { exitCode: number }): Runner {
  const finish = (output: Output, { json = false }: GlobalOptions) => {
    print(output, json);
    outcome.exitCode = output.exitCode ?? 0;
  };
  return {
    call:
      <A extends unknown[]>(work: (api: Api, ...given: A) => Promise<Output>) =>
      async (...given) => {
        const options = optionsOf(given);
        // Parsed by commander as the command declares them; the command itself comes last.
        const own = given.slice(0, -1) as A;
        const config = readConfig(env);
        finish(await connected(config, options, (api) => work(api, ...own)), options);
      },
    look:
      (work) =>
      async (...given) => {
        const options = optionsOf(given);
        finish(await work(env, options), options);
      },
  };
}

async function connected(
  config: Config,
  options: GlobalOptions,
  work: (api: Api) => Promise<Output>,
): Promise<Output> {
  const log = createErrorLog();
  const lifecycle = new Lifecycle(log);
  try {
    return await work(await openApi({ config, log, lifecycle }, options));
  } finally {
    await lifecycle.stop(END_MS);
  }
}

/** Standard output is the command's own. */
function createErrorLog(): Logger {
  return createLogger("error", pino.destination({ fd: 2, sync: true }));
}

function optionsOf(given: unknown[]): GlobalOptions {
  return (given.at(-1) as Command).optsWithGlobals<GlobalOptions>();
}
