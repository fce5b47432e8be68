import { readFile } from "node:fs/promises";

/** Milliseconds that the work took. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** One line: the median, and from where to where it went. */
export function summary(name: string, values: readonly number[], unit: string): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const range = `${least.toFixed(0)} to ${most.toFixed(0)}`;
  return `${name.padEnd(28)} median ${median(values).toFixed(0)} ${unit} (${range})`;
}

/** Memory of a process's own, in KiB; pages that are shared count by their share. */
export async function proportionalKib(pid: number | string): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  return Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
}

/** Of /proc/<pid>/stat. */
const TICK_MS = 10;

/** Time of the processor that a process has used, its own and the kernel's for it. */
export async function cpuMs(pid: number): Promise<number> {
  // Behind the name, which may hold anything: user and system time are the 12th and 13th.
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** The most memory that a process ever held, in MiB. */
export async function peakMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024);
}

/**
 * The value that a share of all values is at most; sorts them.
 * @param share above 0, to 1
 */
export function percentile(values: number[], share: number): number {
  values.sort((a, b) => a - b);
  return values[Math.max(0, Math.ceil(values.length * share) - 1)] ?? Number.NaN;
}

/** As `cpuMs`, of a process with its children: those that live, and those that ended and were waited for. */
export async function familyCpuMs(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  const living = children.split(" ").filter(Boolean).map(Number);
  // One that ends meanwhile counts as waited for the next time.
  const each = await Promise.all(living.map((child) => cpuMs(child).catch(() => 0)));
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  const ended = (Number(fields[13]) + Number(fields[14])) * TICK_MS;
  return (await cpuMs(pid)) + ended + each.reduce((sum, ms) => sum + ms, 0);
}
