import type { MessageInitShape } from "@bufbuild/protobuf";
import type * as pb from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given } from "../../../runtime/rpc/given.ts";
import type {
  Network,
  NetworkAction,
  NetworkDestination,
  NetworkPolicy,
  NetworkRule,
} from "../domain/spec.ts";
import * as codecs from "./codecs.ts";
import { secretsFromMessage, secretsToMessage } from "./secrets.ts";

export function networkFromMessage(message: pb.Network | undefined): Network {
  return {
    enabled: message?.enabled ?? true,
    policy: message?.policy ? policyFromMessage(message.policy) : null,
    secrets: message?.secrets ? secretsFromMessage(message.secrets) : null,
    maxConnections: message?.maxConnections === undefined ? null : Number(message.maxConnections),
    strict: message?.strict ?? false,
  };
}

export function networkToMessage(network: Network): MessageInitShape<typeof pb.NetworkSchema> {
  const { enabled, policy, secrets, maxConnections, strict } = network;
  return {
    enabled,
    strict,
    ...given("policy", policy && policyToMessage(policy)),
    ...given("secrets", secrets && secretsToMessage(secrets)),
    ...given("maxConnections", maxConnections === null ? null : BigInt(maxConnections)),
  };
}

function policyFromMessage(message: pb.NetworkPolicy): NetworkPolicy {
  return {
    defaultEgress: action(message.defaultEgress),
    defaultIngress: action(message.defaultIngress),
    rules: message.rules.map(ruleFromMessage),
  };
}

function policyToMessage(policy: NetworkPolicy): MessageInitShape<typeof pb.NetworkPolicySchema> {
  return {
    defaultEgress: codecs.networkAction.toNumber(policy.defaultEgress),
    defaultIngress: codecs.networkAction.toNumber(policy.defaultIngress),
    rules: policy.rules.map(ruleToMessage),
  };
}

function action(value: number): NetworkAction {
  return codecs.networkAction.toWord(value) ?? "deny";
}

function ruleFromMessage(message: pb.NetworkRule): NetworkRule {
  return {
    direction: codecs.networkDirection.toWord(message.direction) ?? "any",
    destination: destinationFromMessage(message.destination),
    action: action(message.action),
    ports: message.ports.map(({ start, end }) => ({ start, end })),
    protocols: message.protocols.flatMap((value) => codecs.networkProtocol.toWord(value) ?? []),
  };
}

function ruleToMessage(rule: NetworkRule): MessageInitShape<typeof pb.NetworkRuleSchema> {
  return {
    direction: codecs.networkDirection.toNumber(rule.direction),
    destination: { kind: destinationToMessage(rule.destination) },
    action: codecs.networkAction.toNumber(rule.action),
    ports: rule.ports,
    protocols: rule.protocols.map((protocol) => codecs.networkProtocol.toNumber(protocol)),
  };
}

function destinationFromMessage(message: pb.NetworkDestination | undefined): NetworkDestination {
  const kind = message?.kind;
  switch (kind?.case) {
    case "cidr":
      return { kind: "cidr", value: kind.value };
    case "domain":
      return { kind: "domain", value: kind.value };
    case "domainSuffix":
      return { kind: "domain_suffix", value: kind.value };
    case "group": {
      // Validation lets only known groups in; the narrowest one stands for a hole in it.
      return { kind: "group", value: codecs.destinationGroup.toWord(kind.value) ?? "loopback" };
    }
    default:
      return { kind: "any" };
  }
}

type DestinationKind = NonNullable<MessageInitShape<typeof pb.NetworkDestinationSchema>["kind"]>;

function destinationToMessage(destination: NetworkDestination): DestinationKind {
  switch (destination.kind) {
    case "any":
      return { case: "any", value: {} };
    case "cidr":
      return { case: "cidr", value: destination.value };
    case "domain":
      return { case: "domain", value: destination.value };
    case "domain_suffix":
      return { case: "domainSuffix", value: destination.value };
    case "group":
      return { case: "group", value: codecs.destinationGroup.toNumber(destination.value) };
  }
}
