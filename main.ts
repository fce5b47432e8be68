import { banner } from "./app/banner.ts";
import { startOneProcess } from "./app/one-process.ts";
import { readRole } from "./app/roles.ts";
import type { Config } from "./runtime/config.ts";
import { readConfig } from "./runtime/env.ts";
import { StartupError } from "./runtime/errors.ts";
import { Lifecycle, onSignals } from "./runtime/lifecycle.ts";
import { createLogger } from "./runtime/log.ts";
import { countBuffersAsHeap } from "./runtime/memory.ts";
import { startTracing } from "./runtime/tracing/start.ts";

async function main(args: readonly string[], config: Config): Promise<void> {
  const role = readRole(args);
  const [name] = args;
  const log = createLogger(config.log, name ?? "all");
  const lifecycle = new Lifecycle(log);
  const end = async (code: number, delaySecs = 0) => {
    await lifecycle.stop(config.drain.timeoutSecs * 1_000, delaySecs * 1_000);
    process.exit(code);
  };
  const fail = (error: unknown, message: string) => {
    log.fatal({ err: error }, message);
    void end(1);
  };
  process.on("uncaughtException", (error) => fail(error, "an error that nobody caught"));
  const stop = (signal: string) => {
    log.info({ signal }, "stopping");
    void end(0, config.drain.delaySecs);
  };
  onSignals(stop, () => lifecycle.force());
  try {
    await startTracing(config.tracing, name, { log, lifecycle });
    const onCrash = (message: string) => fail(undefined, message);
    const options = { config, log, lifecycle, onCrash };
    if (role) console.log(`sandgate: ${await role(options)}`);
    else console.log(banner(await startOneProcess(options)));
  } catch (error) {
    // Whoever stops the program while it starts need not be told that it did not.
    if (lifecycle.stopping) return;
    report(error);
    await end(1);
  }
}

function report(error: unknown): void {
  console.error(error instanceof StartupError ? `sandgate: ${error.message}` : error);
}

countBuffersAsHeap();
try {
  await main(process.argv.slice(2), readConfig(process.env));
} catch (error) {
  report(error);
  process.exitCode = 1;
}
