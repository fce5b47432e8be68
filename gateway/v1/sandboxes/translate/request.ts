import { create } from "@bufbuild/protobuf";
import {
  type CreateSandboxRequest as CreateMessage,
  CreateSandboxRequestSchema,
  type ListSandboxesRequest as ListMessage,
  ListSandboxesRequestSchema,
} from "../../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { type SandboxSpec, SandboxSpecSchema } from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { pageMessage } from "../../pages.ts";
import { given, numberOf } from "../../values.ts";
import type { CreateSandboxRequest } from "../schema/create.ts";
import type { ListQuery } from "../schema/queries.ts";
import {
  initMessage,
  lifecycleMessage,
  resourcesMessage,
  rlimitMessage,
  runtimeMessage,
} from "./basics.ts";
import { pullPolicies, securityProfiles, statuses } from "./enums.ts";
import { mountMessage } from "./mounts.ts";
import { networkMessage } from "./network.ts";
import { patchMessage } from "./patches.ts";
import { registryMessage } from "./registry.ts";

export function createMessage(body: CreateSandboxRequest, start: boolean): CreateMessage {
  return create(CreateSandboxRequestSchema, {
    name: body.name ?? "",
    slug: given(body.slug),
    spec: specMessage(body),
    start,
  });
}

function specMessage(body: CreateSandboxRequest): SandboxSpec {
  return create(SandboxSpecSchema, {
    image: body.image?.reference ?? body.reference ?? "",
    resources: body.resources ? resourcesMessage(body.resources) : undefined,
    runtime: body.runtime ? runtimeMessage(body.runtime) : undefined,
    env: (body.env ?? []).map(({ key, value }) => ({ key, value })),
    labels: { ...body.labels },
    rlimits: (body.rlimits ?? []).map(rlimitMessage),
    mounts: (body.mounts ?? []).map(mountMessage),
    network: body.network ? networkMessage(body.network) : undefined,
    patches: (body.patches ?? []).map(patchMessage),
    init: body.init ? initMessage(body.init) : undefined,
    pullPolicy: numberOf(pullPolicies, body.pull_policy),
    securityProfile: numberOf(securityProfiles, body.security_profile),
    lifecycle: body.lifecycle ? lifecycleMessage(body.lifecycle) : undefined,
    registry: body.registry ? registryMessage(body.registry) : undefined,
  });
}

export function listMessage(query: ListQuery): ListMessage {
  return create(ListSandboxesRequestSchema, {
    ...pageMessage(query),
    labels: { ...query.labels },
    statuses: (query.status ?? []).map((status) => statuses[status]),
  });
}
