import type { Command } from "commander";
import { readConfig } from "../runtime/env.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { type Api, openApi } from "./api.ts";
import { type Io, type Output, print } from "./output.ts";

/** Options that every command takes. */
export interface GlobalOptions {
  json?: boolean;
  server?: string;
  billingServer?: string;
}

/** What commander hands to an action behind a command's own arguments and options. */
type Action = (...given: unknown[]) => Promise<void>;

/** What a command has that makes its own connections. */
export interface Around {
  env: NodeJS.ProcessEnv;
  lifecycle: Lifecycle;
  /** The option `--server`. */
  server: string | undefined;
}

/** Turns what a command does into what commander calls. */
export interface Runner {
  /** With a connection. */
  call<A extends unknown[]>(work: (api: Api, ...given: A) => Promise<Output>): Action;
  /** Without one. */
  look<A extends unknown[]>(work: (around: Around, ...given: A) => Promise<Output>): Action;
}

export interface RunnerOptions {
  env: NodeJS.ProcessEnv;
  io: Io;
  log: Logger;
  /** Ends what commands open. */
  lifecycle: Lifecycle;
  /** Where the exit code of a command goes that ran. */
  outcome: { exitCode: number };
}

export function createRunner({ env, io, log, lifecycle, outcome }: RunnerOptions): Runner {
  const finish = (output: Output, { json = false }: GlobalOptions) => {
    print(output, io, json);
    outcome.exitCode = output.exitCode ?? 0;
  };
  return {
    call:
      <A extends unknown[]>(work: (api: Api, ...given: A) => Promise<Output>) =>
      async (...given) => {
        const options = optionsOf(given);
        const api = await openApi({ config: readConfig(env), log, lifecycle }, options);
        finish(await work(api, ...ownOf<A>(given)), options);
      },
    look:
      <A extends unknown[]>(work: (around: Around, ...given: A) => Promise<Output>) =>
      async (...given) => {
        const options = optionsOf(given);
        const around = { env, lifecycle, server: options.server };
        finish(await work(around, ...ownOf<A>(given)), options);
      },
  };
}

/** Parsed by commander as the command declares them; the command itself comes last. */
function ownOf<A extends unknown[]>(given: unknown[]): A {
  return given.slice(0, -1) as A;
}

function optionsOf(given: unknown[]): GlobalOptions {
  const command = given.at(-1) as Command;
  const options = command.optsWithGlobals<GlobalOptions>();
  // Else it would be the database here that is asked, or changed.
  if (options.billingServer !== undefined && options.server === undefined)
    command.error("error: option '--billing-server <url>' goes with '--server <url>'");
  return options;
}
