// Kills the processes of the system while clients work with it, and checks that nothing is lost or doubled.
// npm run chaos -- --kills N --seed S [--engine docker]
import { runChaos } from "./chaos.ts";
import { readOptions } from "./options.ts";

try {
  const { faults } = await runChaos(readOptions(process.argv.slice(2)), console.log);
  process.exitCode = faults.length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
