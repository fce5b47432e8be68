import type { Command } from "commander";
import type { Check } from "../../app/doctor.ts";
import type { Output } from "../output.ts";
import type { Runner } from "../runner.ts";

const ABOUT = `looks at what is configured and what answers, changes nothing, and says how to mend what is wrong;
exit code 1 where a check fails`;

export function doctorCommand(program: Command, { look }: Runner): void {
  program
    .command("doctor")
    .description(ABOUT)
    .action(
      look(async (around) => {
        // It knows every part of the program, which no other command need load.
        const { examine } = await import("../../app/doctor.ts");
        return report(await examine(around));
      }),
    );
}

function report(checks: readonly Check[]): Output {
  const failed = checks.filter(({ status }) => status === "fail").length;
  const warned = checks.filter(({ status }) => status === "warn").length;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, status, seen, mend }) => [
    `${status.padEnd(4)}  ${name.padEnd(width)}  ${seen}`,
    ...(mend ? [`${"".padEnd(width + 8)}-> ${mend}`] : []),
  ]);
  const sum =
    failed + warned === 0 ? "nothing is wrong" : `${failed} failed, ${warned} to be looked at`;
  return {
    json: {
      ok: failed === 0,
      checks: checks.map((check) => ({ ...check, mend: check.mend ?? null })),
    },
    text: [...lines, "", sum].join("\n"),
    exitCode: failed === 0 ? 0 : 1,
  };
}
