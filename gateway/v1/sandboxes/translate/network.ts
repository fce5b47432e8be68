import { isIPv4 } from "node:net";
import { create } from "@bufbuild/protobuf";
import {
  type Network,
  type NetworkDestination,
  NetworkDestinationSchema,
  type NetworkPolicy,
  NetworkPolicySchema,
  type NetworkRule,
  NetworkRuleSchema,
  NetworkSchema,
} from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given, nameOf, nameOr, numberOf, toBigInt, toNumber } from "../../values.ts";
import type { Destination, NetworkInput, PolicyInput, RuleInput } from "../schema/network.ts";
import type { NetworkPolicy as PublicPolicy, SpecNetwork } from "../schema/spec-network.ts";
import { actions, directions, groups, protocols } from "./enums.ts";
import { publicSecret, secretsMessage } from "./secrets.ts";

export function networkMessage(network: NetworkInput): Network {
  return create(NetworkSchema, {
    enabled: given(network.enabled),
    policy: network.policy ? policyMessage(network.policy) : undefined,
    secrets: network.secrets ? secretsMessage(network.secrets) : undefined,
    maxConnections: toBigInt(network.max_connections),
    strict: network.strict ?? false,
  });
}

export function publicNetwork(network: Network | undefined): SpecNetwork {
  const { policy, secrets } = network ?? {};
  return {
    enabled: network?.enabled ?? true,
    ports: [],
    trust_host_cas: false,
    dns: null,
    interface: null,
    max_connections: toNumber(network?.maxConnections),
    policy: policy ? publicPolicy(policy) : null,
    secrets: (secrets?.entries ?? []).map((entry) => publicSecret(entry, secrets?.onViolation)),
    tls: null,
  };
}

function policyMessage(policy: PolicyInput): NetworkPolicy {
  return create(NetworkPolicySchema, {
    defaultEgress: numberOf(actions, policy.default_egress),
    defaultIngress: numberOf(actions, policy.default_ingress),
    rules: (policy.rules ?? []).map(ruleMessage),
  });
}

function publicPolicy(policy: NetworkPolicy): PublicPolicy {
  return {
    default_egress: nameOr(actions, policy.defaultEgress ?? 0, "deny"),
    default_ingress: nameOr(actions, policy.defaultIngress ?? 0, "deny"),
    rules: policy.rules.map(publicRule),
  };
}

function ruleMessage(rule: RuleInput): NetworkRule {
  return create(NetworkRuleSchema, {
    direction: directions[rule.direction],
    destination: destinationMessage(rule.destination),
    action: actions[rule.action],
    ports: (rule.ports ?? []).map(({ start, end }) => ({ start, end })),
    protocols: (rule.protocols ?? []).map((protocol) => protocols[protocol]),
  });
}

function publicRule(rule: NetworkRule): PublicPolicy["rules"][number] {
  return {
    direction: nameOf(directions, rule.direction),
    destination: publicDestination(rule.destination),
    action: nameOf(actions, rule.action),
    ports: rule.ports.map(({ start, end }) => ({ start, end })),
    protocols: rule.protocols.map((protocol) => nameOf(protocols, protocol)),
  };
}

function destinationMessage(destination: Destination): NetworkDestination {
  return create(NetworkDestinationSchema, { kind: destinationInit(destination) });
}

function destinationInit(destination: Destination) {
  if (destination === "any") return { case: "any", value: {} } as const;
  if ("cidr" in destination) return { case: "cidr", value: prefixOf(destination.cidr) } as const;
  if ("domain" in destination) return { case: "domain", value: destination.domain } as const;
  if ("group" in destination) return { case: "group", value: groups[destination.group] } as const;
  return { case: "domainSuffix", value: destination.domain_suffix } as const;
}

/** An address alone is the prefix of all its bits. */
function prefixOf(cidr: string): string {
  return cidr.includes("/") ? cidr : `${cidr}/${isIPv4(cidr) ? 32 : 128}`;
}

function publicDestination(destination: NetworkDestination | undefined): Destination {
  const kind = destination?.kind;
  switch (kind?.case) {
    case "any":
      return "any";
    case "cidr":
      return { cidr: kind.value };
    case "domain":
      return { domain: kind.value };
    case "domainSuffix":
      return { domain_suffix: kind.value };
    case "group":
      return { group: nameOf(groups, kind.value) };
    default:
      throw new Error("a rule has no destination that is known here");
  }
}
