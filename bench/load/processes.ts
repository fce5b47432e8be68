import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../../test/support/child.ts";
import { median } from "../support/measure.ts";
import type { ProbeLine } from "./probe.ts";

const EVERY_MS = 2_000;

/** What a process held over the time that was measured. */
export interface Held {
  name: string;
  /** Resident MiB: the median of the first and of the last quarter, and the most. */
  rssMib: { first: number; last: number; most: number };
  /** MiB a minute that resident memory grew, a straight line through all samples. */
  slopeMib: number;
  /** Live JavaScript heap before and behind, in MiB. */
  liveMib: { first: number; last: number };
  /** Open files and sockets before and behind. */
  files: { first: number; last: number };
  lagP99Ms: number;
  lagMaxMs: number;
}

/** Looks at processes from outside while they work. */
export class Watch {
  readonly #children: readonly Child[];
  readonly #folder: string;
  readonly #rss = new Map<string, [atMs: number, mib: number][]>();
  #stopped = false;
  #running: Promise<void> | undefined;

  /** @param folder where their probes write */
  constructor(children: readonly Child[], folder: string) {
    this.#children = children;
    this.#folder = folder;
  }

  start(): void {
    this.#running = this.#sample();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** What each probe says now, by process. */
  async probe(): Promise<Map<string, ProbeLine & { files: number }>> {
    const lines = await Promise.all(
      this.#children.map(async (child) => {
        const files = await openFiles(child.pid);
        return [child.name, { ...(await this.#ask(child)), files }] as const;
      }),
    );
    return new Map(lines);
  }

  held(
    name: string,
    before: ProbeLine & { files: number },
    behind: ProbeLine & { files: number },
  ): Held {
    const samples = this.#rss.get(name) ?? [];
    const mib = samples.map(([, value]) => value);
    const quarter = Math.max(1, mib.length >> 2);
    return {
      name,
      rssMib: {
        first: median(mib.slice(0, quarter)),
        last: median(mib.slice(-quarter)),
        most: Math.max(...mib),
      },
      slopeMib: slope(samples) * 60_000,
      liveMib: { first: before.liveMib, last: behind.liveMib },
      files: { first: before.files, last: behind.files },
      lagP99Ms: behind.lagP99Ms,
      lagMaxMs: behind.lagMaxMs,
    };
  }

  async #sample(): Promise<void> {
    while (!this.#stopped) {
      for (const { name, pid } of this.#children) {
        const samples = this.#rss.get(name) ?? [];
        this.#rss.set(name, samples);
        samples.push([performance.now(), await rssMib(pid)]);
      }
      await sleep(EVERY_MS);
    }
  }

  async #ask(child: Child): Promise<ProbeLine> {
    const file = join(this.#folder, `${child.pid}.jsonl`);
    const known = (await linesOf(file)).length;
    child.signal("SIGUSR2");
    for (;;) {
      const lines = await linesOf(file);
      if (lines.length > known) return JSON.parse(lines.at(-1) ?? "");
      if (!child.lives) throw new Error(`${child.name} ended`);
      await sleep(20);
    }
  }
}

/** The least-squares line through samples: its rise for each step of time. */
function slope(samples: readonly [number, number][]): number {
  const mean = (of: (sample: [number, number]) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [at, value] = [mean(([x]) => x), mean(([, y]) => y)];
  return mean(([x, y]) => (x - at) * (y - value)) / mean(([x]) => (x - at) ** 2);
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

async function openFiles(pid: number | undefined): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

async function rssMib(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024;
}
