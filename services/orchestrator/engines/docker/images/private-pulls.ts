import { createHash } from "node:crypto";
import type Docker from "dockerode";
import { call, callAllowing } from "../call.ts";
import { findImage, keepPrivate } from "./local-images.ts";
import { familiar, parseReference, type Reference } from "./reference.ts";

/** What a note says, as the labels of an empty volume: a daemon keeps nothing else on anybody's behalf. */
const LABELS = {
  kept: "dev.sandgate.pull.kept",
  before: "dev.sandgate.pull.before",
} as const;

/**
 * Notes at the daemon that a pull with somebody's own credentials begins: for its length the image has its public name, and
 * a crash would leave it there.
 * @param before id of the image that had the name; undefined: none
 */
export async function notePrivatePull(
  docker: Docker,
  reference: Reference,
  kept: Reference,
  before: string | undefined,
): Promise<void> {
  const Labels = { [LABELS.kept]: familiar(kept), [LABELS.before]: before ?? "" };
  await call((options) => docker.createVolume({ Name: noteName(reference), Labels, ...options }));
}

/** The image is kept private, so there is nothing left to do. */
export async function forgetPrivatePull(docker: Docker, reference: Reference): Promise<void> {
  await callAllowing([404], (options) => docker.getVolume(noteName(reference)).remove(options));
}

/** Does what a pull that a crash broke off has left undone. @returns whether there was one */
export async function settlePrivatePull(docker: Docker, reference: Reference): Promise<boolean> {
  const note = await callAllowing([404], () => docker.getVolume(noteName(reference)).inspect());
  // The daemon sends null for no labels.
  const labels: Record<string, string> = note?.Labels ?? {};
  const keptName = labels[LABELS.kept];
  if (keptName === undefined) return false;
  const before = labels[LABELS.before] || undefined;
  const pulled = await findImage(docker, reference, {});
  if (pulled && pulled.Id !== before) {
    const kept = parseReference(keptName);
    await keepPrivate(docker, { reference, id: pulled.Id, kept }, before);
  }
  await forgetPrivatePull(docker, reference);
  return true;
}

function noteName(reference: Reference): string {
  const hash = createHash("sha256").update(familiar(reference)).digest("hex");
  return `sandgate-pull-${hash}`;
}
