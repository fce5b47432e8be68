import type { MessageInitShape } from "@bufbuild/protobuf";
import type * as pb from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import type {
  HostPattern,
  SealedSpec,
  Secret,
  SecretSource,
  SecretsConfig,
  ViolationAction,
} from "../domain/spec.ts";

const DEFAULT_VIOLATION: ViolationAction = { kind: "block_and_log" };

export function secretsFromMessage(message: pb.SecretsConfig): SecretsConfig {
  const onViolation = violationFromMessage(message.onViolation) ?? DEFAULT_VIOLATION;
  return { onViolation, entries: message.entries.map((entry) => secret(entry, onViolation)) };
}

function secret(entry: pb.Secret, onViolation: ViolationAction): Secret {
  const { headers, basicAuth, queryParams, body } = entry.injection ?? {};
  return {
    envVar: entry.envVar,
    placeholder: entry.placeholder,
    allowedHosts: entry.allowedHosts.map(hostFromMessage),
    injection: {
      headers: headers ?? true,
      basicAuth: basicAuth ?? true,
      queryParams: queryParams ?? false,
      body: body ?? false,
    },
    onViolation: violationFromMessage(entry.onViolation) ?? onViolation,
    requireTlsIdentity: entry.requireTlsIdentity ?? true,
  };
}

/** What of the secrets is sealed, in the order of the entries. */
export function sealedSecrets(message: pb.SecretsConfig | undefined): SealedSpec["secrets"] {
  return (message?.entries ?? []).map(({ value, source }) => ({ value, source: sourceOf(source) }));
}

function sourceOf(source: pb.SecretSource | undefined): SecretSource | null {
  const kind = source?.kind;
  return kind?.case === undefined ? null : { kind: kind.case, value: kind.value };
}

/** Without values and sources, which no answer shows. */
export function secretsToMessage(
  secrets: SecretsConfig,
): MessageInitShape<typeof pb.SecretsConfigSchema> {
  return {
    onViolation: violationToMessage(secrets.onViolation),
    entries: secrets.entries.map((entry) => ({
      ...entry,
      allowedHosts: entry.allowedHosts.map(hostToMessage),
      onViolation: violationToMessage(entry.onViolation),
    })),
  };
}

function violationFromMessage(
  message: pb.ViolationAction | undefined,
): ViolationAction | undefined {
  const kind = message?.kind;
  switch (kind?.case) {
    case "block":
      return { kind: "block" };
    case "blockAndLog":
      return { kind: "block_and_log" };
    case "blockAndTerminate":
      return { kind: "block_and_terminate" };
    case "passthrough":
      return { kind: "passthrough", hosts: kind.value.hosts.map(hostFromMessage) };
    default:
      return undefined;
  }
}

function violationToMessage(
  action: ViolationAction,
): MessageInitShape<typeof pb.ViolationActionSchema> {
  switch (action.kind) {
    case "block":
      return { kind: { case: "block", value: {} } };
    case "block_and_log":
      return { kind: { case: "blockAndLog", value: {} } };
    case "block_and_terminate":
      return { kind: { case: "blockAndTerminate", value: {} } };
    case "passthrough":
      return { kind: { case: "passthrough", value: { hosts: action.hosts.map(hostToMessage) } } };
  }
}

function hostFromMessage({ kind }: pb.HostPattern): HostPattern {
  return kind.case === "exact" || kind.case === "wildcard"
    ? { kind: kind.case, value: kind.value }
    : { kind: "any" };
}

function hostToMessage(host: HostPattern): MessageInitShape<typeof pb.HostPatternSchema> {
  return host.kind === "any"
    ? { kind: { case: "any", value: {} } }
    : { kind: { case: host.kind, value: host.value } };
}
