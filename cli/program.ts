import { Command, InvalidArgumentError, Option } from "commander";
import { doctorCommand } from "./commands/doctor.ts";
import { eventCommands } from "./commands/events.ts";
import { keyCommands } from "./commands/keys.ts";
import { memberCommands } from "./commands/members.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { organizationCommands } from "./commands/organizations.ts";
import { overrideCommands } from "./commands/overrides.ts";
import { planCommands } from "./commands/plans.ts";
import { usageCommands } from "./commands/usage.ts";
import type { Runner } from "./runner.ts";

const HOW = `
Without --server a command works on the database of the program, by the same settings: DATABASE_URL, or the
PostgreSQL under DATA_DIR, whether the program runs or not. With --server it calls the services of a running
program, with SERVICE_TOKEN or the token under DATA_DIR.

<org> is an organization's slug or id. Exit code: 0; 1 refused or failed; 2 the command line does not fit.`;

/** Every command, by group. */
export function buildProgram(runner: Runner): Command {
  const program = new Command("npm run cli --")
    .description("Sandgate, for its operator: organizations, keys, limits, usage, audit")
    .option("--json", "print JSON, errors too")
    .addOption(url("--server <url>", "RPC port of a running program, or of its organization role"))
    .addOption(url("--billing-server <url>", "RPC port of the billing role, where that runs alone"))
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", HOW);
  const groups = [
    organizationCommands,
    memberCommands,
    keyCommands,
    planCommands,
    overrideCommands,
    usageCommands,
    eventCommands,
    doctorCommand,
    migrateCommand,
  ];
  for (const add of groups) add(program, runner);
  return program;
}

function url(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text) => {
    if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
    throw new InvalidArgumentError("It is a URL such as http://127.0.0.1:9090.");
  });
}
