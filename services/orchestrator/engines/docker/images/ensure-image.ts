import { createHash } from "node:crypto";
import type Docker from "dockerode";
import type { ImageInspectInfo } from "dockerode";
import { type Allocation, EngineFailure, type RegistryCredentials } from "../../engine.ts";
import { SharedWork, Turns } from "../shared-work.ts";
import type { ImageConfig } from "../workload.ts";
import { findImage, isPrivateName, keepPrivate, privateName } from "./local-images.ts";
import { operatorCredentials } from "./operator-credentials.ts";
import { forgetPrivatePull, notePrivatePull, settlePrivatePull } from "./private-pulls.ts";
import { type Credentials, type PullPatience, pull } from "./pull.ts";
import { parseReference, type Reference } from "./reference.ts";

export interface ImageSource {
  /**
   * The sandbox's image, pulled where its policy and what the host has ask for it.
   * @throws EngineFailure with a sentence for the sandbox's owner
   */
  ensure(allocation: Allocation, signal: AbortSignal): Promise<ImageConfig>;
}

export interface ImageOptions {
  docker: Docker;
  /** As images name it, such as `amd64`. */
  architecture: () => Promise<string>;
  patience: PullPatience;
  /** Of the operator's Docker `config.json`; undefined: Docker's default. */
  configDirectory: string | undefined;
}

interface Wanted {
  reference: Reference;
  policy: Allocation["spec"]["pullPolicy"];
  registry: RegistryCredentials;
}

interface Obtained {
  image: ImageInspectInfo;
  pulled: boolean;
}

export function createImageSource(options: ImageOptions): ImageSource {
  const shared = new SharedWork<Obtained>();
  // Between a private pull and its renaming nobody else may look at that name.
  const turns = new Turns();
  return {
    async ensure({ spec, registry }, signal) {
      const wanted = { reference: parseReference(spec.image), policy: spec.pullPolicy, registry };
      const { image, pulled } = await shared.do(keyOf(wanted), signal, (signal) =>
        turns.take(wanted.reference.name, () => obtain(options, wanted, signal)),
      );
      refuseOtherPlatform(image, await options.architecture(), wanted.reference);
      return { ...configOf(image), pulled };
    },
  };
}

// Callers with other credentials never share an answer.
function keyOf(wanted: Wanted): string {
  return createHash("sha256").update(JSON.stringify(wanted)).digest("hex");
}

async function obtain(
  { docker, patience, configDirectory }: ImageOptions,
  { reference, policy, registry }: Wanted,
  signal: AbortSignal,
): Promise<Obtained> {
  signal.throwIfAborted();
  if (isPrivateName(reference)) throw new EngineFailure(`image '${reference.text}' does not exist`);
  const kept = registry.mode === "inline" ? privateName(reference, registry) : undefined;
  const [left, found] = await Promise.all([
    settlePrivatePull(docker, reference),
    findImage(docker, reference, { signal }),
  ]);
  const open = left ? await findImage(docker, reference, { signal }) : found;
  if (policy !== "always") {
    const local = (kept && (await findImage(docker, kept, { signal }))) ?? open;
    if (local) return { image: local, pulled: false };
  }
  if (policy === "never")
    throw new EngineFailure(
      `image '${reference.text}' is not on this host, and pull_policy is never`,
    );
  const credentials = await credentialsFor(reference, registry, configDirectory);
  let pulled: ImageInspectInfo | undefined;
  if (kept) await notePrivatePull(docker, reference, kept, open?.Id);
  try {
    await pull(docker, reference, credentials, patience, signal);
  } finally {
    // Also after a pull that was broken off: it may have succeeded all the same.
    pulled = await findImage(docker, reference, {});
    if (kept && pulled && pulled.Id !== open?.Id)
      await keepPrivate(docker, { reference, id: pulled.Id, kept }, open?.Id);
    if (kept) await forgetPrivatePull(docker, reference);
  }
  if (!pulled) throw new EngineFailure(`image '${reference.text}' vanished after its pull`);
  return { image: pulled, pulled: true };
}

async function credentialsFor(
  { host }: Reference,
  registry: RegistryCredentials,
  configDirectory: string | undefined,
): Promise<Credentials> {
  if (registry.mode === "anonymous") return undefined;
  if (registry.mode === "auto") return await operatorCredentials(host, configDirectory);
  const { username, password } = registry;
  return { username, password, serveraddress: host };
}

// What else a processor of a kind runs.
const RUNS: Record<string, string[]> = { amd64: ["386"], arm64: ["arm"] };

function refuseOtherPlatform(image: ImageInspectInfo, host: string, { text }: Reference): void {
  const { Os, Architecture } = image;
  if (Os !== "linux") throw new EngineFailure(`image '${text}' is for ${Os}, not for Linux`);
  // Some builders leave it out.
  if (Architecture === "" || Architecture === host || RUNS[host]?.includes(Architecture)) return;
  throw new EngineFailure(`image '${text}' is for ${Architecture}; this host is ${host}`);
}

// The daemon sends null where an image says nothing.
function configOf({ Id, Config }: ImageInspectInfo): Omit<ImageConfig, "pulled"> {
  return {
    id: Id,
    entrypoint: [Config?.Entrypoint ?? []].flat(),
    cmd: Config?.Cmd ?? [],
    env: Config?.Env ?? [],
    user: Config?.User ?? "",
    labels: Object.keys(Config?.Labels ?? {}),
  };
}
