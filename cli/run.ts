import { type Command, CommanderError } from "commander";
import { Lifecycle, onSignals } from "../runtime/lifecycle.ts";
import { createLogger } from "../runtime/log.ts";
import { describeError } from "./errors.ts";
import type { Io } from "./output.ts";
import { buildProgram } from "./program.ts";
import { createRunner } from "./runner.ts";

/** Codes that commander throws with where somebody asked for help. */
const HELP = ["commander.helpDisplayed", "commander.help"];

/** For what a command has opened. */
const END_MS = 10_000;
/** As shells have it for a command that was interrupted. */
const INTERRUPTED = 130;

export interface CommandLine {
  /** Without program and script. */
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  io: Io;
  /** Of the signals that interrupt it. */
  signals: Pick<NodeJS.EventEmitter, "on">;
  /** Ends the process where it was interrupted. */
  exit: (code: number) => void;
}

/**
 * Runs one command line, prints what it says, and ends what it opened.
 * @returns the exit code: 0; 1 where it was refused or failed; 2 where the command line does not fit
 */
export async function runCli({ args, env, io, signals, exit }: CommandLine): Promise<number> {
  // Standard output is the command's own.
  const log = createLogger({ level: "error", format: "json" }, "cli", { write: io.err });
  const lifecycle = new Lifecycle(log);
  const interrupt = () => {
    void lifecycle.stop(END_MS).then(() => exit(INTERRUPTED));
  };
  onSignals(interrupt, () => lifecycle.force(), signals);
  const outcome = { exitCode: 0 };
  const asJson = args.includes("--json");
  const program = buildProgram(createRunner({ env, io, log, lifecycle, outcome }));
  configure(program, io, asJson);
  try {
    await program.parseAsync(args, { from: "user" });
    return outcome.exitCode;
  } catch (error) {
    return fail(error, io, asJson);
  } finally {
    await lifecycle.stop(END_MS);
  }
}

/** Errors come back as exceptions, and in JSON are printed as such; help is printed as it is. */
function configure(command: Command, io: Io, asJson: boolean): void {
  const outputError = asJson ? () => {} : io.err;
  command.exitOverride().configureOutput({ writeOut: io.out, writeErr: io.err, outputError });
  for (const sub of command.commands) configure(sub, io, asJson);
}

function fail(error: unknown, io: Io, asJson: boolean): number {
  if (error instanceof CommanderError && HELP.includes(error.code)) {
    // A group without a command shows its help, as a mistake.
    return error.exitCode === 0 ? 0 : 2;
  }
  const usage = error instanceof CommanderError;
  const { text, json } = describeError(error);
  // Commander has printed its own, with a hint.
  if (asJson) io.err(`${JSON.stringify({ error: json })}\n`);
  else if (!usage) io.err(`${text}\n`);
  return usage ? 2 : 1;
}
