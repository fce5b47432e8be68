import { type Command, CommanderError } from "commander";
import pino from "pino";
import { Lifecycle, onSignals } from "../runtime/lifecycle.ts";
import { createLogger } from "../runtime/log.ts";
import { describeError } from "./errors.ts";
import { buildProgram } from "./program.ts";
import { createRunner } from "./runner.ts";

/** Codes that commander throws with where somebody asked for help. */
const HELP = ["commander.helpDisplayed", "commander.help"];

/** For what a command has opened. */
const END_MS = 10_000;
/** As shells have it for a command that was interrupted. */
const INTERRUPTED = 130;

/**
 * Runs one command line, prints what it says, and ends what it opened.
 * @param args without program and script
 * @returns the exit code: 0; 1 where it was refused or failed; 2 where the command line does not fit
 */
export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  // Standard output is the command's own.
  const log = createLogger("error", pino.destination({ fd: 2, sync: true }));
  const lifecycle = new Lifecycle(log);
  const interrupt = () => {
    void lifecycle.stop(END_MS).then(() => process.exit(INTERRUPTED));
  };
  onSignals(interrupt, () => lifecycle.force());
  const outcome = { exitCode: 0 };
  const asJson = args.includes("--json");
  const program = buildProgram(createRunner({ env, log, lifecycle, outcome }));
  quietly(program, asJson);
  try {
    await program.parseAsync(args, { from: "user" });
    return outcome.exitCode;
  } catch (error) {
    return fail(error, asJson);
  } finally {
    await lifecycle.stop(END_MS);
  }
}

/** Errors come back as exceptions, and in JSON are printed as such; help is printed as it is. */
function quietly(command: Command, asJson: boolean): void {
  command.exitOverride();
  if (asJson) command.configureOutput({ outputError: () => {} });
  for (const sub of command.commands) quietly(sub, asJson);
}

function fail(error: unknown, asJson: boolean): number {
  if (error instanceof CommanderError && HELP.includes(error.code)) {
    // A group without a command shows its help, as a mistake.
    return error.exitCode === 0 ? 0 : 2;
  }
  const usage = error instanceof CommanderError;
  const { text, json } = describeError(error);
  // Commander has printed its own, with a hint.
  if (asJson) console.error(JSON.stringify({ error: json }));
  else if (!usage) console.error(text);
  return usage ? 2 : 1;
}
