import { pathHeader } from "../../test/support/files.ts";
import type { Operation } from "./operations.ts";
import type { Volume } from "./world.ts";

const PATH = "/v1/volumes";
const MOST_FILES = 20;
const MAX_BYTES = 8_192;

export const createVolume: Operation = async ({ world, caller }) => {
  const body = { name: world.name(), labels: { team: "load" } };
  const reply = await caller.call({ method: "POST", path: PATH, body });
  if (reply.status === 200) world.volumes.add({ id: reply.body.id, files: [], busy: false });
  return reply;
};

export const deleteVolume: Operation = ({ world, caller }) => {
  const volume = world.takeVolume();
  if (!volume) return undefined;
  world.volumes.delete(volume);
  return caller.call({ method: "DELETE", path: `${PATH}/${volume.id}` });
};

export const listVolumes: Operation = ({ caller }) => caller.call({ method: "GET", path: PATH });

export const putFile: Operation = ({ world, caller }) => {
  const volume = world.takeVolume();
  if (!volume) return undefined;
  const file = `dir-${world.random.between(1, 3)}/${world.random.between(1, MOST_FILES)}.bin`;
  const body = Buffer.alloc(world.random.between(1, MAX_BYTES), file);
  return withFile(volume, async () => {
    const path = `${PATH}/${volume.id}/files/content`;
    const reply = await caller.call({ method: "PUT", path, body, headers: pathHeader(file) });
    if (reply.status === 200 && !volume.files.includes(file)) volume.files.push(file);
    return reply;
  });
};

export const getFile = onFile("GET", "/content");
export const statFile = onFile("GET", "/stat");

export const listFiles: Operation = ({ world, caller }) => {
  const volume = world.takeVolume();
  if (!volume) return undefined;
  const path = `${PATH}/${volume.id}/files`;
  return withFile(volume, () => caller.call({ method: "GET", path, headers: pathHeader("") }));
};

export const removeFile: Operation = ({ world, caller }) => {
  const volume = world.takeVolume(({ files }) => files.length > 0);
  if (!volume) return undefined;
  const file = world.random.pick(volume.files);
  volume.files = volume.files.filter((other) => other !== file);
  const path = `${PATH}/${volume.id}/files`;
  return withFile(volume, () => caller.call({ method: "DELETE", path, headers: pathHeader(file) }));
};

function onFile(method: string, rest: string): Operation {
  return ({ world, caller }) => {
    const volume = world.takeVolume(({ files }) => files.length > 0);
    if (!volume) return undefined;
    const headers = pathHeader(world.random.pick(volume.files));
    const path = `${PATH}/${volume.id}/files${rest}`;
    return withFile(volume, () => caller.call({ method, path, headers }));
  };
}

async function withFile<T>(volume: Volume, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    volume.busy = false;
  }
}
