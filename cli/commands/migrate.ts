import type { Command } from "commander";
import type { Migrated } from "../../app/migration.ts";
import { StartupError } from "../../runtime/errors.ts";
import type { Output } from "../output.ts";
import type { Runner } from "../runner.ts";

const ABOUT = `brings the database up to date, once, however many do it at the same time; processes that run may go on, also
those of the release before. With MIGRATE=off nobody else does it`;

export function migrateCommand(program: Command, { look }: Runner): void {
  program
    .command("migrate")
    .description(ABOUT)
    .option("--status", "only look; exit code 1 where this release cannot work on it")
    .action(
      look(async (around, { status: statusOnly = false }: { status?: boolean }) => {
        if (around.server !== undefined)
          throw new StartupError("migrate works on the database itself: leave --server out");
        const { migrateDatabase } = await import("../../app/migration.ts");
        return report(await migrateDatabase({ ...around, statusOnly }));
      }),
    );
}

function report(migrated: Migrated): Output {
  const { release, migratedBy, applied, due, newer, faults } = migrated;
  const isFit = due.length === 0 && faults.length === 0;
  const lines = [
    ...listed("applied", applied),
    ...listed("not applied", due),
    ...listed(`applied by release ${migratedBy ?? "unknown"}, which is newer`, newer),
    ...faults,
    ...(isFit ? [`the database is fit for release ${release}`] : []),
  ];
  return {
    json: { ok: isFit, release, migrated_by: migratedBy, applied, due, newer, faults },
    text: lines.join("\n"),
    exitCode: isFit ? 0 : 1,
  };
}

function listed(what: string, names: readonly string[]): string[] {
  return names.map((name) => `${what}: ${name}`);
}
