import type { Command } from "commander";
import { expect, test } from "vitest";
import { buildProgram } from "../../cli/program.ts";
import { callCli, spawnCli } from "../support/cli.ts";

const program = buildProgram({ call: () => async () => {}, look: () => async () => {} });

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

test.each(everyCommand(program).map((command) => [pathOf(command), command] as const))(
  "`%s` has help that says what it does, takes and gives",
  (path, command) => {
    const help = command.helpInformation();
    expect(help).toContain(`Usage: ${path}`);
    expect(command.description()).not.toBe("");
    expect(help).toContain("--json");
    for (const { name, description } of command.registeredArguments.map((argument) => ({
      name: argument.name(),
      description: argument.description,
    })))
      expect(description, name).not.toBe("");
    for (const option of command.options) expect(option.description, option.flags).not.toBe("");
  },
);

test("every command that is promised is there", () => {
  const paths = everyCommand(program)
    .filter(({ commands }) => commands.length === 0)
    .map((command) => pathOf(command).replace("npm run cli -- ", ""));
  expect(paths.sort()).toEqual([
    "doctor",
    "events list",
    "events show",
    "keys create",
    "keys list",
    "keys revoke",
    "keys rotate",
    "members add",
    "members list",
    "members remove",
    "migrate",
    "organizations create",
    "organizations list",
    "organizations resume",
    "organizations suspend",
    "overrides clear",
    "overrides set",
    "overrides show",
    "plans assign",
    "plans list",
    "plans set",
    "plans show",
    "quotas",
    "usage",
  ]);
});

test("help is an answer, and goes where answers go", async () => {
  const asked = await spawnCli({}, "keys", "create", "--help");
  expect(asked).toMatchObject({ code: 0, stderr: "" });
  expect(asked.stdout).toContain("Usage: npm run cli -- keys create [options] <org>");
});

test.each([
  [["keys"], "Usage: npm run cli -- keys"],
  [["nosuch"], "unknown command 'nosuch'"],
  [["keys", "create", "default"], "required option '--name <name>' not specified"],
  [["keys", "create", "default", "--name", "x", "--expires", "2026-02-30"], "It is RFC 3339"],
  [["overrides", "set", "default", "max_sandboxen=1"], "The names are max_sandboxes, "],
  [["overrides", "set", "default", "max_sandboxes=-1"], "max_sandboxes is an integer from 0"],
  [["plans", "set", "p", "--price", "vcpu_hour=0.000000001"], "at most 8 decimals"],
  [["organizations", "list", "--server", "localhost:9090"], "It is a URL such as"],
  [["plans", "list", "--billing-server", "http://127.0.0.1:9"], "goes with '--server <url>'"],
])("a command line that does not fit is a usage error: %j", async (args, sentence) => {
  const ended = await callCli({}, ...args);
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(ended.stderr).toContain(sentence);
});

test("a usage error in JSON", async () => {
  const ended = await callCli({}, "keys", "list", "--json");
  expect(ended).toMatchObject({ code: 2, stdout: "" });
  expect(JSON.parse(ended.stderr)).toEqual({
    error: { reason: "USAGE", message: "missing required argument 'org'", details: {} },
  });
});
