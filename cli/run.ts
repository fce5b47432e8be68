import { type Command, CommanderError } from "commander";
import { describeError } from "./errors.ts";
import { buildProgram } from "./program.ts";
import { createRunner } from "./runner.ts";

/** Codes that commander throws with where somebody asked for help. */
const HELP = ["commander.helpDisplayed", "commander.help"];

/**
 * Runs one command line and prints what it says.
 * @param args without program and script
 * @returns the exit code: 0; 1 where it was refused or failed; 2 where the command line does not fit
 */
export async function runCli(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const asJson = args.includes("--json");
  const outcome = { exitCode: 0 };
  const program = buildProgram(createRunner(env, outcome));
  quietly(program, asJson);
  try {
    await program.parseAsync(args, { from: "user" });
    return outcome.exitCode;
  } catch (error) {
    return fail(error, asJson);
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
