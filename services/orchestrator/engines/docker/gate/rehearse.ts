import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import { call, callAllowing } from "../call.ts";
import { gateVolumeName, LABELS } from "../names.ts";
import { networkFacts } from "../policy/facts.ts";
import { ruleset } from "../policy/ruleset.ts";
import { hasRules, setRules } from "../policy/set-rules.ts";
import { isStatic } from "./elf.ts";
import { becomes, HostProcess } from "./held-process.ts";
import { type Program, tarOf } from "./tar.ts";

export interface Rehearsal {
  docker: Docker;
  installationId: string;
  gate: Buffer;
  /** The daemon has an init program. */
  hasInit: boolean;
  /** An OCI runtime; undefined: the daemon's default. */
  runtime: string | undefined;
}

/** Of the containers of rehearsals, which are no machines. */
const LABEL = "dev.sandgate.gate";
const IN_IMAGE = "/gate";
const VOLUME_AT = "/fill";
const WAIT_MS = 5_000;
const LEFT_OVER_MS = 60_000;

/**
 * Does once, with a container that has no network, all that a start with a network policy takes, and fills the
 * installation's volume with the gate, and the daemon's init.
 * @throws Error saying what does not work
 */
export async function rehearse(rehearsal: Rehearsal): Promise<void> {
  const { docker } = rehearsal;
  const image = await ensureImage(docker, rehearsal.gate);
  const { id } = await call((more) =>
    docker.createContainer({ ...containerOptions(rehearsal, image), ...more }),
  );
  const container = docker.getContainer(id);
  try {
    await call((options) => container.start(options));
    await play(rehearsal, container);
  } finally {
    // 409: it is being removed already.
    await callAllowing([404, 409], (options) => container.remove({ force: true, ...options }));
    await removeLeftOvers(docker, rehearsal.installationId);
  }
}

function containerOptions({ installationId, hasInit, runtime }: Rehearsal, Image: string) {
  const volume = {
    Type: "volume" as const,
    Source: gateVolumeName(installationId),
    Target: VOLUME_AT,
    VolumeOptions: {
      NoCopy: true,
      Labels: { [LABELS.installation]: installationId },
      DriverConfig: { Name: "local", Options: {} },
    },
  };
  return {
    Image,
    Entrypoint: [IN_IMAGE],
    Labels: { [LABEL]: installationId },
    HostConfig: {
      Init: hasInit,
      NetworkMode: "none",
      CapDrop: ["ALL"],
      Mounts: [volume],
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
}

async function play(rehearsal: Rehearsal, container: Docker.Container): Promise<void> {
  const info = await call((options) => container.inspect(options));
  const first = await opened(info.State.Pid);
  const held = rehearsal.hasInit ? await onlyChild(first) : first;
  const parent = await opened(await first.parent());
  try {
    const waits = await becomes(() => held.isHeldBy(rehearsal.gate), WAIT_MS);
    if (!waits || !(await first.isIn(info.Id)))
      throw new Error("a container's processes are not among those that this program sees");
    await fill(rehearsal, container, rehearsal.hasInit ? await first.read("exe") : undefined);
    const facts = await networkFacts(info, first, parent);
    await setRules(held, ruleset({ enabled: true, policy: null, maxConnections: 1 }, facts));
    if (!(await hasRules(held))) throw new Error("nft took the rules, but they are not in force");
    process.kill(held.pid, "SIGUSR1");
    const isGone = () =>
      held.read("status").then(
        () => false,
        () => true,
      );
    if (!(await becomes(isGone, WAIT_MS))) throw new Error("a container did not pass its gate");
  } finally {
    await Promise.all([...new Set([first, held, parent])].map((one) => one.close()));
  }
}

async function opened(pid: number): Promise<HostProcess> {
  const found = await HostProcess.open(pid);
  if (!found) throw new Error("a container's processes are not among those that this program sees");
  return found;
}

async function onlyChild(parent: HostProcess): Promise<HostProcess> {
  let child: number | undefined;
  await becomes(async () => {
    [child] = await parent.children();
    return child !== undefined;
  }, WAIT_MS);
  return await opened(child ?? 0);
}

async function fill(
  { gate }: Rehearsal,
  container: Docker.Container,
  init: Buffer | undefined,
): Promise<void> {
  if (init && !isStatic(init)) throw new Error("the daemon's init is not linked statically");
  const programs: Program[] = [{ name: "gate", content: gate }];
  if (init) programs.push({ name: "init", content: init });
  const stand = await Promise.all(
    programs.map(async ({ name, content }) => (await sizeOf(container, name)) === content.length),
  );
  if (stand.every(Boolean)) return;
  await call((options) => container.putArchive(tarOf(programs), { path: VOLUME_AT, ...options }));
}

async function sizeOf(container: Docker.Container, name: string): Promise<number | undefined> {
  const path = `${VOLUME_AT}/${name}`;
  const answer = await callAllowing([404], (options) =>
    container.infoArchive({ path, ...options }),
  );
  if (!answer) return undefined;
  answer.resume();
  const header = String(answer.headers["x-docker-container-path-stat"]);
  return JSON.parse(Buffer.from(header, "base64").toString()).size;
}

/** An image with nothing but the gate, under a name that nothing is ever pulled from, and that names the content. */
async function ensureImage(docker: Docker, gate: Buffer): Promise<string> {
  const repo = "sandgate.invalid/gate";
  const tag = createHash("sha256").update(gate).digest("hex").slice(0, 12);
  const name = `${repo}:${tag}`;
  if (await callAllowing([404], () => docker.getImage(name).inspect())) return name;
  const archive = tarOf([{ name: IN_IMAGE.slice(1), content: gate }]);
  // The client's types know only of files and streams, the client itself of buffers too.
  const answer = await call(() => docker.importImage(archive as unknown as string, { repo, tag }));
  await text(answer);
  return name;
}

// Of rehearsals that were cut off; a younger one may be somebody else's.
async function removeLeftOvers(docker: Docker, installationId: string): Promise<void> {
  const filters = { label: [`${LABEL}=${installationId}`] };
  const found = await call((options) => docker.listContainers({ all: true, filters, ...options }));
  const old = found.filter(({ Created }) => Created * 1_000 < Date.now() - LEFT_OVER_MS);
  await Promise.all(
    old.map(({ Id }) =>
      callAllowing([404, 409], (options) =>
        docker.getContainer(Id).remove({ force: true, ...options }),
      ),
    ),
  );
}
