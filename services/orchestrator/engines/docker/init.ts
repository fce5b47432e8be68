import { posix } from "node:path";
import type { ContainerInspectInfo } from "dockerode";
import { type Allocation, EngineFailure, type EngineSpec } from "../engine.ts";
import type { Launch } from "./container-options.ts";
import { type Disk, whyNotRunnable } from "./find-program.ts";
import { besideInit, isSupervised, SUPERVISOR_NEEDS, splitBesideInit } from "./supervisor.ts";
import { type ImageConfig, turnedOutEmpty } from "./workload.ts";

/** A program of the image that is PID 1, and what it takes for that. */
export interface InitProgram {
  /** Absolute. */
  program: string;
  stopSignal: string;
  env: Record<string, string>;
  tmpfs: Record<string, string>;
}

type Init = NonNullable<EngineSpec["init"]>;

const CANDIDATES = ["/sbin/init", "/lib/systemd/systemd", "/usr/lib/systemd/systemd"] as const;
/** Inits differ in what they take for a wish to shut down; most take this. */
const TERM = "SIGTERM";

/** What `init` most likely comes to; only the disk tells. Pure. */
export function likelyInit({ cmd }: Init): InitProgram {
  const program = cmd === "auto" ? CANDIDATES[0] : cmd;
  return describeInit(program, program);
}

/**
 * What `init` comes to on a disk.
 * @throws EngineFailure where there is no such program
 */
export async function findInit(disk: Disk, { cmd }: Init): Promise<InitProgram> {
  for (const program of cmd === "auto" ? CANDIDATES : [cmd]) {
    const why = await whyNotRunnable(disk, program, { path: undefined, workdir: "/" });
    if (why === undefined)
      return describeInit(program, (await disk.stat(program))?.path ?? program);
    if (cmd !== "auto") throw new EngineFailure(`init ${JSON.stringify(program)} ${why}`);
  }
  throw new EngineFailure(`init "auto" found none in the image: not ${CANDIDATES.join(", nor ")}`);
}

// systemd mounts what it needs at /run itself where it may; in a container it may not.
function describeInit(program: string, resolved: string): InitProgram {
  if (posix.basename(resolved) !== "systemd")
    return { program, stopSignal: TERM, env: {}, tmpfs: {} };
  const flags = "rw,exec,nosuid,nodev,mode=755";
  const tmpfs = { "/run": flags, "/run/lock": flags };
  return { program, stopSignal: "SIGRTMIN+3", env: { container: "docker" }, tmpfs };
}

/**
 * The container with that init as PID 1, and the workload beside it.
 * @throws EngineFailure for a user whom this engine cannot give the workload
 */
export function initLaunch(
  { spec }: Allocation,
  image: ImageConfig,
  ownInit: InitProgram,
  workload: string[],
): Launch {
  const { init, runtime } = spec;
  const user = runtime.user ?? (workload.length > 0 ? image.user : "");
  if (!ROOTS.includes(user))
    throw new EngineFailure(
      `user ${JSON.stringify(user)} cannot be had beside init on this engine: all of the sandbox is root's`,
    );
  const words = [ownInit.program, ...(init?.args ?? [])];
  const own = Object.fromEntries((init?.env ?? []).map(({ key, value }) => [key, value]));
  const env = { ...ownInit.env, ...own };
  const how = workload.length > 0 ? besideInit(words, workload) : { entrypoint: words, cmd: [] };
  const isEmpty = turnedOutEmpty(runtime, workload);
  return { ...how, env, init: false, hasWorkload: workload.length > 0, isEmpty, ownInit };
}

const ROOTS = ["", "root", "0", "0:0", "root:root"];

/** Whether a container was made with this init and what it takes. Pure. */
export function isMadeWith(
  { Cmd, StopSignal }: ContainerInspectInfo["Config"] & { StopSignal?: string },
  entrypoint: readonly string[],
  { program, stopSignal }: InitProgram,
): boolean {
  const { init } = programsOf(entrypoint, Cmd ?? [], true);
  return init === program && StopSignal === stopSignal;
}

/** The programs that a container is to run, each by what it is there for. Pure. */
export function programsOf(
  entrypoint: readonly string[],
  cmd: readonly string[],
  hasOwnInit: boolean,
): Record<string, string | undefined> {
  const beside = splitBesideInit(entrypoint, cmd);
  if (beside)
    return {
      "shell of the workload beside init": SUPERVISOR_NEEDS,
      init: beside.init[0],
      command: beside.workload[0],
    };
  if (hasOwnInit) return { init: entrypoint[0] };
  return { command: isSupervised(entrypoint) ? cmd[0] : entrypoint[0] };
}
