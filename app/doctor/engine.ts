import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { EngineConfig } from "../../runtime/config.ts";
import { whyOf } from "../../runtime/data-dir.ts";
import { inTime } from "../../runtime/in-time.ts";
import {
  checkRuntime,
  connectDocker,
  type DockerAddress,
  defaultDockerHost,
  probeDocker,
} from "../../services/orchestrator/engines/docker/connect.ts";
import { type Check, type Facts, fail, ok, type Subject, skip, warn } from "./check.ts";

const LIMIT_MS = 3_000;
const NONE = "simulated";

/** What runs machines, and whether network policies can be kept and volumes mounted. */
export async function askEngine({ config: { engine }, facts }: Subject): Promise<Check[]> {
  const mend = "set ENGINE=docker for real sandboxes";
  if (engine.choice === NONE)
    return [
      warn("engine", "ENGINE=simulated: nothing really runs", mend),
      skip("network policies", "nothing runs"),
      skip("volumes", "nothing runs"),
    ];
  const docker = { host: engine.dockerHost };
  const { ok: answers, why } = await probeDocker(docker);
  if (!answers)
    return [
      ofAbsent(engine, why, facts),
      skip("network policies", "Docker does not answer"),
      skip("volumes", "Docker does not answer"),
    ];
  return [
    await askDocker(docker, engine, why),
    askPolicies(engine, facts),
    askVolumes(engine, facts),
    ...askImages(engine, facts),
  ];
}

function ofAbsent({ choice }: EngineConfig, why: string, { engines = [] }: Facts): Check {
  const mend = "start Docker, or set DOCKER_HOST to where it is";
  if (choice === "docker") return fail("engine", `ENGINE=docker, but ${why}`, mend);
  // As at a start: what is real is not taken for simulated.
  if (engines.includes("docker"))
    return fail("engine", `${why}, and this installation's sandboxes are there`, mend);
  return warn("engine", `${why}: nothing really runs where ENGINE=auto finds none`, mend);
}

async function askDocker(docker: DockerAddress, engine: EngineConfig, why: string): Promise<Check> {
  try {
    const { ApiVersion } = await inTime(connectDocker(docker).version(), LIMIT_MS);
    if (engine.dockerRuntime !== undefined) await checkRuntime(docker, engine.dockerRuntime);
    const runtime = engine.dockerRuntime ?? "the daemon's own";
    return ok("engine", `${why}, API ${ApiVersion}; runtime: ${runtime}`);
  } catch (error) {
    return fail("engine", whyOf(error), "set DOCKER_RUNTIME to one that Docker has, or unset it");
  }
}

/** The leader has tried it out; where there is none, what it takes is looked for. */
function askPolicies(engine: EngineConfig, { leader }: Facts): Check {
  const name = "network policies";
  if (engine.dockerNetworkPolicy === "unenforced")
    return warn(
      name,
      "none is kept: DOCKER_NETWORK_POLICY=unenforced",
      "unset it, and run as root",
    );
  const mend =
    "run Sandgate as root on the machine of its Docker, with the programs nft and nsenter";
  if (leader?.engine === "docker") {
    if (leader.features.includes("network.policy"))
      return ok(name, "the orchestrator enforces them");
    return fail(name, "the orchestrator cannot enforce them: no sandbox can have a network", mend);
  }
  const obstacle = obstacleOf(engine, ["nft", "nsenter"]);
  if (obstacle) return warn(name, `they cannot be enforced from here: ${obstacle}`, mend);
  return ok(name, "what it takes is here; an orchestrator tries it out when it starts");
}

/** The same of volumes in sandboxes. */
function askVolumes(engine: EngineConfig, { leader }: Facts): Check {
  const name = "volumes";
  const mend =
    "run Sandgate as root on the machine of its Docker, which has to see VOLUMES_DIR, with the program mount";
  if (leader?.engine === "docker") {
    if (leader.features.includes("mounts.named")) return ok(name, "sandboxes can mount them");
    return warn(name, "the orchestrator cannot mount them: no sandbox can have one", mend);
  }
  const obstacle = obstacleOf(engine, ["mount"]);
  if (obstacle) return warn(name, `they cannot be mounted from here: ${obstacle}`, mend);
  return ok(name, "what it takes is here; an orchestrator tries it out when it starts");
}

/** The same of disk images, where the operator has accepted them. */
function askImages(engine: EngineConfig, { leader }: Facts): Check[] {
  if (engine.dockerDiskImages !== "loop") return [];
  const name = "disk images";
  const mend =
    "give this host loop devices, ext4, losetup, blkid and mknod, or unset DOCKER_DISK_IMAGES";
  if (leader?.engine === "docker" && !leader.features.includes("mounts.disk_image"))
    return [warn(name, "the orchestrator cannot mount them: no sandbox can have one", mend)];
  const why = "DOCKER_DISK_IMAGES=loop: this host's kernel reads file systems that tenants wrote";
  return [warn(name, why, "unset it where you do not trust those who write them")];
}

function obstacleOf(
  { dockerHost = defaultDockerHost() }: EngineConfig,
  programs: readonly string[],
): string | undefined {
  if (process.platform !== "linux") return "this is not Linux";
  if (!dockerHost.startsWith("unix:")) return "Docker is not reached by a socket of this machine";
  if (process.getuid?.() !== 0) return "this user is not root";
  const missing = programs.filter((program) => !isOnPath(program));
  return missing.length > 0 ? `there is no program ${missing.join(", ")}` : undefined;
}

function isOnPath(program: string): boolean {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
