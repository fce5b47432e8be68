import type { Sandbox } from "../../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxSpec } from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { derived } from "../../../../runtime/derived.ts";
import { nameOf, toTime } from "../../values.ts";
import type { Sandbox as PublicSandbox } from "../schema/sandbox.ts";
import type { SandboxSpec as PublicSpec } from "../schema/spec.ts";
import { publicLifecycle, publicResources, publicRlimit, publicRuntime } from "./basics.ts";
import { statuses, statusReasons } from "./enums.ts";
import { publicMount } from "./mounts.ts";
import { publicNetwork } from "./network.ts";

/**
 * A sandbox as its owner sees it, field by field: nothing that a service adds shows by itself.
 * @throws Error on a message without what every sandbox has
 */
export function publicSandbox(sandbox: Sandbox): PublicSandbox {
  if (!sandbox.spec) throw new Error("the answer holds a sandbox without a spec");
  const { statusReason, startedAt, stoppedAt } = sandbox;
  return {
    id: sandbox.id,
    org_id: sandbox.orgId,
    name: sandbox.name,
    slug: sandbox.slug,
    status: nameOf(statuses, sandbox.status),
    status_reason: statusReason === undefined ? null : nameOf(statusReasons, statusReason),
    ephemeral: sandbox.ephemeral,
    created_at: toTime(sandbox.createdAt),
    started_at: startedAt ? toTime(startedAt) : null,
    stopped_at: stoppedAt ? toTime(stoppedAt) : null,
    last_failure_message: sandbox.lastFailureMessage ?? null,
    spec: publicSpec(sandbox.spec),
  };
}

const publicSpec = derived((spec: SandboxSpec): PublicSpec => {
  return {
    image: spec.image,
    resources: publicResources(spec.resources),
    runtime: publicRuntime(spec.runtime),
    env: spec.env.map(({ key, value }) => ({ key, value })),
    labels: { ...spec.labels },
    rlimits: spec.rlimits.map(publicRlimit),
    lifecycle: publicLifecycle(spec.lifecycle),
    mounts: spec.mounts.map(publicMount),
    network: publicNetwork(spec.network),
  };
});

const publicSpecText = derived((spec: PublicSpec) => JSON.stringify(spec));

/** The public JSON of a spec, made once for as long as it is kept. */
export function specText(spec: SandboxSpec): string {
  return publicSpecText(publicSpec(spec));
}

/** The JSON of a sandbox. */
export function sandboxText({ spec, ...rest }: PublicSandbox): string {
  return `${JSON.stringify(rest).slice(0, -1)},"spec":${publicSpecText(spec)}}`;
}
