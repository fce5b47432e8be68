import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ViolationAction as ActionMessage,
  type HostPattern as HostMessage,
  HostPatternSchema,
  type Secret,
  SecretSchema,
  type SecretSource,
  SecretSourceSchema,
  type SecretsConfig,
  SecretsConfigSchema,
  ViolationActionSchema,
} from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given } from "../../values.ts";
import type { HostPattern, SecretInput, SecretsInput, ViolationAction } from "../schema/secrets.ts";
import type { SpecSecret } from "../schema/spec-network.ts";

export function secretsMessage({ entries, on_violation }: SecretsInput): SecretsConfig {
  return create(SecretsConfigSchema, {
    entries: (entries ?? []).map(secretMessage),
    onViolation: on_violation ? actionMessage(on_violation) : undefined,
  });
}

function secretMessage(secret: SecretInput): Secret {
  const { injection, source, on_violation } = secret;
  return create(SecretSchema, {
    envVar: secret.env_var,
    value: secret.value ?? "",
    source: source ? sourceMessage(source) : undefined,
    placeholder: secret.placeholder,
    allowedHosts: (secret.allowed_hosts ?? []).map(hostMessage),
    injection: injection ? injectionInit(injection) : undefined,
    onViolation: on_violation ? actionMessage(on_violation) : undefined,
    requireTlsIdentity: given(secret.require_tls_identity),
  });
}

/** Neither its value nor where that is read from. */
export function publicSecret(secret: Secret, forAll: ActionMessage | undefined): SpecSecret {
  const { injection, onViolation } = secret;
  return {
    env_var: secret.envVar,
    placeholder: secret.placeholder,
    allowed_hosts: secret.allowedHosts.map(publicHost),
    injection: {
      headers: injection?.headers ?? true,
      basic_auth: injection?.basicAuth ?? true,
      query_params: injection?.queryParams ?? false,
      body: injection?.body ?? false,
    },
    on_violation: publicAction(onViolation ?? forAll),
  };
}

function injectionInit(injection: NonNullable<SecretInput["injection"]>) {
  return {
    headers: given(injection.headers),
    basicAuth: given(injection.basic_auth),
    queryParams: given(injection.query_params),
    body: given(injection.body),
  };
}

function sourceMessage(source: NonNullable<SecretInput["source"]>): SecretSource {
  const kind =
    source.type === "env"
      ? ({ case: "env", value: source.var } as const)
      : ({ case: "store", value: source.reference } as const);
  return create(SecretSourceSchema, { kind });
}

function hostMessage(host: HostPattern): HostMessage {
  const kind =
    host.type === "any"
      ? ({ case: "any", value: {} } as const)
      : ({ case: host.type, value: host.value } as const);
  return create(HostPatternSchema, { kind });
}

function publicHost({ kind }: HostMessage): HostPattern {
  switch (kind.case) {
    case "exact":
    case "wildcard":
      return { type: kind.case, value: kind.value };
    case "any":
      return { type: "any" };
    default:
      throw new Error("a host pattern is not known here");
  }
}

function actionMessage(action: ViolationAction): ActionMessage {
  return create(ViolationActionSchema, { kind: actionInit(action) });
}

function actionInit(
  action: ViolationAction,
): NonNullable<MessageInitShape<typeof ViolationActionSchema>["kind"]> {
  switch (action.type) {
    case "block":
      return { case: "block", value: {} };
    case "block_and_log":
      return { case: "blockAndLog", value: {} };
    case "block_and_terminate":
      return { case: "blockAndTerminate", value: {} };
    case "passthrough":
      return { case: "passthrough", value: { hosts: action.hosts.map(hostMessage) } };
  }
}

function publicAction(action: ActionMessage | undefined): ViolationAction {
  const kind = action?.kind;
  switch (kind?.case) {
    case "block":
      return { type: "block" };
    case "blockAndTerminate":
      return { type: "block_and_terminate" };
    case "passthrough":
      return { type: "passthrough", hosts: kind.value.hosts.map(publicHost) };
    default:
      return { type: "block_and_log" };
  }
}
