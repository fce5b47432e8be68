import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import { call, callAllowing } from "../call.ts";
import { sizeAt } from "../container-disk.ts";
import { PRIVATE_HOST } from "../images/local-images.ts";
import { type TarEntry, writeTar } from "../write-tar.ts";
import { isStatic } from "./elf.ts";
import { gateMount } from "./gated.ts";
import { becomes, HostProcess } from "./held-process.ts";

export interface Rehearsal {
  docker: Docker;
  installationId: string;
  gate: Buffer;
  /** The daemon has an init program. */
  hasInit: boolean;
  /** An OCI runtime; undefined: the daemon's default. */
  runtime: string | undefined;
}

/** A container of a rehearsal, which waits at the gate. */
export interface HeldContainer {
  info: Docker.ContainerInspectInfo;
  /** Its first process. */
  first: HostProcess;
  /** The one at the gate: the first, or its child. */
  held: HostProcess;
}

/** Of the containers of rehearsals, which are no machines. */
const LABEL = "dev.sandgate.gate";
const IN_IMAGE = "/gate";
const VOLUME_AT = "/fill";
const WAIT_MS = 5_000;
const LEFT_OVER_MS = 60_000;

/**
 * Holds a container that has no network, lets it pass, and sees it gone; fills the installation's volume with the gate,
 * and the daemon's init.
 * @param mounts what else is mounted in it
 * @param act what is done while it waits
 * @throws Error saying what does not work
 */
export async function holdOne(
  rehearsal: Rehearsal,
  mounts: Docker.MountConfig,
  act: (container: HeldContainer) => Promise<void>,
): Promise<void> {
  const { docker } = rehearsal;
  const image = await ensureImage(docker, rehearsal.gate);
  const { id } = await call((more) =>
    docker.createContainer({ ...containerOptions(rehearsal, image, mounts), ...more }),
  );
  const container = docker.getContainer(id);
  try {
    await call((options) => container.start(options));
    await play(rehearsal, container, act);
  } finally {
    // 409: it is being removed already.
    await callAllowing([404, 409], (options) => container.remove({ force: true, ...options }));
    await removeLeftOvers(docker, rehearsal.installationId);
  }
}

function containerOptions(
  { installationId, hasInit, runtime }: Rehearsal,
  Image: string,
  mounts: Docker.MountConfig,
) {
  return {
    Image,
    Entrypoint: [IN_IMAGE],
    Labels: { [LABEL]: installationId },
    HostConfig: {
      Init: hasInit,
      NetworkMode: "none",
      CapDrop: ["ALL"],
      Mounts: [{ ...gateMount(installationId), Target: VOLUME_AT, ReadOnly: false }, ...mounts],
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
}

async function play(
  rehearsal: Rehearsal,
  container: Docker.Container,
  act: (container: HeldContainer) => Promise<void>,
): Promise<void> {
  const info = await call((options) => container.inspect(options));
  const first = await HostProcess.of(info.State.Pid);
  const held = rehearsal.hasInit ? await onlyChild(first) : first;
  try {
    const waits = await becomes(() => held.isHeldBy(rehearsal.gate), WAIT_MS);
    if (!waits || !(await first.isIn(info.Id)))
      throw new Error("a container's processes are not among those that this program sees");
    await fill(rehearsal, container, rehearsal.hasInit ? await first.read("exe") : undefined);
    await act({ info, first, held });
    process.kill(held.pid, "SIGUSR1");
    const isGone = () =>
      held.read("status").then(
        () => false,
        () => true,
      );
    if (!(await becomes(isGone, WAIT_MS))) throw new Error("a container did not pass its gate");
  } finally {
    await Promise.all([...new Set([first, held])].map((one) => one.close()));
  }
}

async function onlyChild(parent: HostProcess): Promise<HostProcess> {
  let child: number | undefined;
  await becomes(async () => {
    [child] = await parent.children();
    return child !== undefined;
  }, WAIT_MS);
  return await HostProcess.of(child ?? 0);
}

async function fill(
  { gate }: Rehearsal,
  container: Docker.Container,
  init: Buffer | undefined,
): Promise<void> {
  if (init && !isStatic(init)) throw new Error("the daemon's init is not linked statically");
  const programs = Object.entries({ gate, ...(init ? { init } : {}) });
  const stand = await Promise.all(
    programs.map(
      async ([name, { length }]) =>
        (await sizeAt(container, `${VOLUME_AT}/${name}`, {})) === length,
    ),
  );
  if (stand.every(Boolean)) return;
  const archive = writeTar(programs.map(([name, content]) => program(name, content)));
  await call((options) => container.putArchive(archive, { path: VOLUME_AT, ...options }));
}

function program(name: string, content: Buffer): TarEntry {
  return { header: { name, type: "file", mode: 0o755 }, content: [content] };
}

/** An image with nothing but the gate, under a name that nothing is ever pulled from, and that names the content. */
async function ensureImage(docker: Docker, gate: Buffer): Promise<string> {
  const repo = `${PRIVATE_HOST}/gate`;
  const tag = createHash("sha256").update(gate).digest("hex").slice(0, 12);
  const name = `${repo}:${tag}`;
  if (await callAllowing([404], () => docker.getImage(name).inspect())) return name;
  const archive = writeTar([program(IN_IMAGE.slice(1), gate)]);
  const answer = await call(() => docker.importImage(archive, { repo, tag }));
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
