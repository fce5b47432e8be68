import { isIP } from "node:net";
import { type Allocation, EngineFailure } from "../../engine.ts";
import { DEFAULT_PATH } from "../find-program.ts";
import type { Step } from "./plan.ts";

const SCRIPTS = "/.msb/scripts";
const EXECUTABLE = 0o755;

/** Whether something is to be written to a new container's disk before its first start. Pure. */
export function needsPreparation({ patches, spec }: Allocation): boolean {
  return patches.length > 0 || Object.keys(spec.runtime.scripts).length > 0;
}

/** Everything that is to be written, in order: scripts last, since their place is theirs. Pure. */
export function preparationSteps({ patches, spec }: Allocation): Step[] {
  const steps = patches.map((patch, i) => ({ label: `patches[${i}]`, patch }));
  const scripts = Object.entries(spec.runtime.scripts).map(([name, content]) => ({
    label: `runtime.scripts[${JSON.stringify(name)}]`,
    patch: {
      kind: "text" as const,
      path: `${SCRIPTS}/${name}`,
      content,
      mode: EXECUTABLE,
      replace: true,
    },
  }));
  return [...steps.filter(({ patch }) => !isHostsLine(patch)), ...scripts];
}

/** PATH of a sandbox with scripts, which come first; undefined: as it would be. Pure. */
export function searchPath(
  { runtime, env, init }: Allocation["spec"],
  imageEnv: readonly string[],
): string | undefined {
  if (Object.keys(runtime.scripts).length === 0) return undefined;
  const own = [...env, ...(init?.env ?? [])].findLast(({ key }) => key === "PATH")?.value;
  const ofImage = imageEnv.findLast((pair) => pair.startsWith("PATH="))?.slice("PATH=".length);
  const path = own ?? ofImage ?? DEFAULT_PATH;
  return path.split(":").includes(SCRIPTS) ? path : `${SCRIPTS}:${path}`;
}

type Patch = Allocation["patches"][number];
const HOSTS = "/etc/hosts";

function isHostsLine(patch: Patch): patch is Patch & { kind: "append" } {
  return patch.kind === "append" && patch.path.split("/").filter(Boolean).join("/") === "etc/hosts";
}

/**
 * What patches append to /etc/hosts, which Docker writes anew at each start, as `name:address` for Docker to write. Pure.
 * @throws EngineFailure for what is no line of an address and names
 */
export function extraHosts({ patches }: Pick<Allocation, "patches">): string[] {
  return patches.flatMap((patch, i) => {
    if (!isHostsLine(patch)) return [];
    return patch.content.split("\n").flatMap((line) => hostsOf(line, `patches[${i}]`));
  });
}

const NAME = /^[A-Za-z0-9._-]+$/;

function hostsOf(line: string, label: string): string[] {
  const [address, ...names] = line.replace(/#.*/, "").split(/\s+/).filter(Boolean);
  if (address === undefined) return [];
  if (isIP(address) === 0 || names.length === 0 || !names.every((name) => NAME.test(name)))
    throw new EngineFailure(`${label}: ${HOSTS} takes lines of an address and names only`);
  return names.map((name) => `${name}:${address}`);
}

const OF_DOCKER = [HOSTS, "/etc/hostname", "/etc/resolv.conf"];
// What is written there is hidden in the sandbox; and what the daemon mounts there is not the sandbox's to write.
const OF_KERNEL = ["/proc", "/sys", "/dev"];

/**
 * Why a patch of this path would not show in the sandbox, as the end of a sentence. Pure.
 * @param mounts where something is mounted over the disk
 */
export function whyOutOfReach(path: string, mounts: readonly string[]): string | undefined {
  if (path === HOSTS) return "is written by Docker at each start, and can only be appended to";
  if (OF_DOCKER.includes(path)) return "is written by Docker at each start";
  const isIn = (top: string) => path.startsWith(`${top}/`);
  if (OF_KERNEL.some((top) => path === top || isIn(top))) return "is not on the sandbox's disk";
  const mount = mounts.find(isIn);
  return mount === undefined ? undefined : `would be hidden by the mount at ${mount}`;
}
