// Kills the processes of the system while clients work with it, and checks that nothing is lost or doubled.
// npm run chaos -- --kills N --seed S [--engine docker]
import { runChaos } from "./chaos.ts";
import { readOptions } from "./options.ts";

// By an exit of its own, which takes the processes that it started with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

try {
  const { faults } = await runChaos(readOptions(process.argv.slice(2)), console.log);
  process.exitCode = faults.length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
