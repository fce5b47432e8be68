// Loaded into each process by `--import`: tells what only the process itself knows.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** A line of a process's file. */
export interface ProbeLine {
  /** Of the JavaScript heap, once all garbage is collected. */
  liveMib: number;
  /** Of the event loop since the line before, in milliseconds. */
  lagP99Ms: number;
  lagMaxMs: number;
}

const folder = process.env.LOAD_PROBE_FOLDER;
if (folder) listen(join(folder, `${process.pid}.jsonl`));

/** Each SIGUSR2 asks for a line. */
function listen(file: string): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  process.on("SIGUSR2", () => {
    const [lagP99Ms, lagMaxMs] = [delay.percentile(99) / 1e6 - 10, delay.max / 1e6 - 10];
    collect();
    const liveMib = process.memoryUsage().heapUsed / 2 ** 20;
    delay.reset();
    const line: ProbeLine = { liveMib, lagP99Ms, lagMaxMs };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  });
}
