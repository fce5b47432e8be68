import { runCli } from "./cli/run.ts";

process.exitCode = await runCli({
  args: process.argv.slice(2),
  env: process.env,
  io: {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  },
  signals: process,
  exit: (code) => process.exit(code),
});
