import type { MessageInitShape } from "@bufbuild/protobuf";
import type * as pb from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given } from "../../../runtime/rpc/given.ts";
import {
  DEFAULTS,
  type Registry,
  type Runtime,
  type SandboxSpec,
  type SealedSpec,
} from "../domain/spec.ts";
import * as codecs from "./codecs.ts";
import { mountFromMessage, mountToMessage } from "./mounts.ts";
import { networkFromMessage, networkToMessage } from "./network.ts";
import { patchFromMessage } from "./patches.ts";
import { sealedSecrets } from "./secrets.ts";

type SpecInit = MessageInitShape<typeof pb.SandboxSpecSchema>;

/** A valid message with every default filled in, without what is to be sealed. */
export function specFromMessage(message: pb.SandboxSpec): SandboxSpec {
  const { resources, lifecycle, init } = message;
  return {
    image: message.image,
    resources: {
      vcpus: resources?.vcpus ?? DEFAULTS.vcpus,
      memoryMib: resources?.memoryMib ?? DEFAULTS.memoryMib,
      diskSizeMib: resources?.diskSizeMib ?? null,
    },
    runtime: runtimeFromMessage(message.runtime),
    env: message.env.map(({ key, value }) => ({ key, value })),
    labels: message.labels,
    rlimits: message.rlimits.map(({ resource, soft, hard }) => ({
      resource: codecs.rlimitResource.toWord(resource) ?? "nofile",
      soft: Number(soft),
      hard: Number(hard),
    })),
    mounts: message.mounts.map(mountFromMessage),
    network: networkFromMessage(message.network),
    init: init
      ? { cmd: init.cmd, args: init.args, env: init.env.map(({ key, value }) => ({ key, value })) }
      : null,
    pullPolicy: codecs.pullPolicy.toWord(message.pullPolicy) ?? "if_missing",
    securityProfile: codecs.securityProfile.toWord(message.securityProfile) ?? "default",
    lifecycle: {
      ephemeral: lifecycle?.ephemeral ?? false,
      idleTimeoutSecs: seconds(lifecycle?.idleTimeoutSecs),
      maxDurationSecs: seconds(lifecycle?.maxDurationSecs),
    },
    registry: registryFromMessage(message.registry),
  };
}

/** The parts of a message that are stored sealed. */
export function sealedFromMessage(message: pb.SandboxSpec): SealedSpec {
  const mode = message.registry?.mode;
  return {
    patches: message.patches.flatMap(patchFromMessage),
    secrets: sealedSecrets(message.network?.secrets),
    registry:
      mode?.case === "inline"
        ? { username: mode.value.username, password: mode.value.password }
        : null,
  };
}

export function specToMessage(spec: SandboxSpec): SpecInit {
  const { lifecycle } = spec;
  return {
    image: spec.image,
    resources: {
      vcpus: spec.resources.vcpus,
      memoryMib: spec.resources.memoryMib,
      ...given("diskSizeMib", spec.resources.diskSizeMib),
    },
    runtime: runtimeToMessage(spec.runtime),
    env: spec.env,
    labels: spec.labels,
    rlimits: spec.rlimits.map(({ resource, soft, hard }) => ({
      resource: codecs.rlimitResource.toNumber(resource),
      soft: BigInt(soft),
      hard: BigInt(hard),
    })),
    mounts: spec.mounts.map(mountToMessage),
    network: networkToMessage(spec.network),
    ...given("init", spec.init),
    pullPolicy: codecs.pullPolicy.toNumber(spec.pullPolicy),
    securityProfile: codecs.securityProfile.toNumber(spec.securityProfile),
    lifecycle: {
      ephemeral: lifecycle.ephemeral,
      ...given("idleTimeoutSecs", bigintOf(lifecycle.idleTimeoutSecs)),
      ...given("maxDurationSecs", bigintOf(lifecycle.maxDurationSecs)),
    },
    registry: registryToMessage(spec.registry),
  };
}

function runtimeFromMessage(message: pb.Runtime | undefined): Runtime {
  return {
    cmd: message?.cmd?.values ?? null,
    entrypoint: message?.entrypoint?.values ?? null,
    shell: message?.shell ?? null,
    user: message?.user ?? null,
    workdir: message?.workdir ?? null,
    logLevel: codecs.logLevel.toWord(message?.logLevel ?? 0) ?? null,
    scripts: message?.scripts ?? {},
  };
}

function runtimeToMessage(runtime: Runtime): MessageInitShape<typeof pb.RuntimeSchema> {
  const { cmd, entrypoint, shell, user, workdir, logLevel, scripts } = runtime;
  return {
    ...given("cmd", cmd && { values: cmd }),
    ...given("entrypoint", entrypoint && { values: entrypoint }),
    ...given("shell", shell),
    ...given("user", user),
    ...given("workdir", workdir),
    ...given("logLevel", logLevel && codecs.logLevel.toNumber(logLevel)),
    scripts,
  };
}

function registryFromMessage(message: pb.RegistryAuth | undefined): Registry {
  const mode = message?.mode;
  switch (mode?.case) {
    case "anonymous":
      return { mode: "anonymous" };
    case "specific":
      return { mode: "specific", credentialId: mode.value.credentialId };
    case "inline":
      return { mode: "inline" };
    default:
      return { mode: "auto" };
  }
}

function registryToMessage(registry: Registry): MessageInitShape<typeof pb.RegistryAuthSchema> {
  return registry.mode === "specific"
    ? { mode: { case: "specific", value: { credentialId: registry.credentialId } } }
    : { mode: { case: registry.mode, value: {} } };
}

function seconds(value: bigint | undefined): number | null {
  return value === undefined ? null : Number(value);
}

function bigintOf(value: number | null): bigint | null {
  return value === null ? null : BigInt(value);
}
