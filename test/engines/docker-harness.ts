import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type Docker from "dockerode";
import pino from "pino";
import { v7 as uuid } from "uuid";
import { afterAll, beforeAll } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import {
  createDockerEngine,
  type DockerEngine,
  type DockerEngineOptions,
} from "../../services/orchestrator/engines/docker/docker-engine.ts";
import type { Allocation, Instance } from "../../services/orchestrator/engines/engine.ts";
import type { DirectoryVolumes } from "../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { loadImage, type TestImage } from "../support/images.ts";
import { UNHURRIED } from "./allocations.ts";

export const SILENT = pino({ level: "silent" });

/** An installation of one test file's own on the Docker daemon, put away after it. */
export interface DockerHarness {
  installationId: string;
  docker: Docker;
  engine: DockerEngine;
  start(allocation: Allocation): Promise<Instance>;
  /** The container that the sandbox has under its settled name. */
  container(allocation: Allocation): Docker.Container;
  /** Runs a program in a sandbox. @returns its standard output and error, in one, trimmed */
  run(allocation: Allocation, ...command: string[]): Promise<string>;
  /** What the sandbox has written, trimmed, without what its supervisor said. */
  output(allocation: Allocation): Promise<string>;
  /** What the supervisor has said: each line of its own. */
  said(allocation: Allocation): Promise<string[]>;
}

/** Call it in a suite; what it returns is filled in before the first test. */
export function useDocker(
  host: string,
  images: readonly TestImage[],
  options: Partial<DockerEngineOptions["docker"]> = {},
  volumes?: DirectoryVolumes,
): DockerHarness {
  const docker = connectDocker({ host });
  const installationId = uuid();
  const engine = createDockerEngine({
    installationId,
    docker: { host, ...options },
    log: SILENT,
    volumes,
  });
  const container = ({ sandboxId, generation }: Allocation) =>
    docker.getContainer(`sbx-${sandboxId}-${generation}`);
  const lines = async (allocation: Allocation) => {
    const logs = await container(allocation).logs({ stdout: true, stderr: true });
    return (await demultiplexed(docker, Readable.from([logs]))).split("\n");
  };
  const isSaid = (line: string) => line.startsWith("sandgate: ");

  beforeAll(async () => {
    for (const image of images) await loadImage(docker, image);
  });
  afterAll(async () => {
    for (const { sandboxId } of await engine.list()) await engine.remove(sandboxId);
    await engine.close();
    const filters = { label: [`dev.sandgate.installation=${installationId}`] };
    for (const { Id } of await docker.listNetworks({ filters }))
      await docker.getNetwork(Id).remove();
    for (const { Name } of (await docker.listVolumes({ filters })).Volumes)
      await docker.getVolume(Name).remove();
  });
  return {
    installationId,
    docker,
    engine,
    container,
    start: (allocation) => engine.ensureRunning(allocation, UNHURRIED),
    run: (allocation, ...command) => runIn(docker, container(allocation), command),
    output: async (allocation) =>
      (await lines(allocation))
        .filter((line) => !isSaid(line))
        .join("\n")
        .trim(),
    said: async (allocation) => (await lines(allocation)).filter(isSaid),
  };
}

async function runIn(docker: Docker, container: Docker.Container, Cmd: string[]): Promise<string> {
  const exec = await container.exec({ Cmd, AttachStdout: true, AttachStderr: true });
  return await demultiplexed(docker, await exec.start({}));
}

async function demultiplexed(docker: Docker, stream: NodeJS.ReadableStream): Promise<string> {
  const all = new PassThrough();
  stream.on("end", () => all.end());
  docker.modem.demuxStream(stream, all, all);
  return (await text(all)).trim();
}
