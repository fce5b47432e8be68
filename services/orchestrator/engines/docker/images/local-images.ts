import { createHash } from "node:crypto";
import type Docker from "dockerode";
import type { ImageInspectInfo } from "dockerode";
import { type CallLimits, call, callAllowing } from "../call.ts";
import { familiar, type Reference } from "./reference.ts";

/** A host that cannot exist (RFC 2606), so no reference to it is ever pulled. */
export const PRIVATE_HOST = "sandgate.invalid";

/** A name for an image that only these credentials find; see keepPrivate. */
export function privateName(
  reference: Reference,
  { username, password }: { username: string; password: string },
): Reference {
  const value = createHash("sha256")
    .update(JSON.stringify([familiar(reference), username, password]))
    .digest("hex");
  return {
    text: reference.text,
    host: PRIVATE_HOST,
    name: `${PRIVATE_HOST}/private`,
    version: { kind: "tag", value },
  };
}

export function isPrivateName({ host }: Reference): boolean {
  return host === PRIVATE_HOST;
}

/** The image that the host has under exactly this name; the daemon would also take a part of any image's id. */
export async function findImage(
  docker: Docker,
  reference: Reference,
  limits: CallLimits,
): Promise<ImageInspectInfo | undefined> {
  const name = familiar(reference);
  const image = await callAllowing([404], () => docker.getImage(name).inspect(), limits);
  const names = [...(image?.RepoTags ?? []), ...(image?.RepoDigests ?? [])];
  return names.includes(name) ? image : undefined;
}

/**
 * After a pull with somebody's own credentials: keeps the image under the name that only those find, and puts the
 * public name back to what it was. Otherwise everybody on this host could use the image by asking for it.
 */
export async function keepPrivate(
  docker: Docker,
  pulled: { reference: Reference; id: string; kept: Reference },
  before: string | undefined,
): Promise<void> {
  const { reference, id, kept } = pulled;
  await tag(docker, id, kept);
  if (before === undefined) await untag(docker, reference);
  else await tag(docker, before, reference);
}

async function tag(docker: Docker, id: string, { name, version }: Reference): Promise<void> {
  await call((options) => docker.getImage(id).tag({ repo: name, tag: version.value, ...options }));
}

async function untag(docker: Docker, reference: Reference): Promise<void> {
  const image = docker.getImage(familiar(reference));
  await callAllowing([404], (options) => image.remove({ noprune: true, ...options }));
}
