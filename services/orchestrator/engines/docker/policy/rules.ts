import { type DestinationGroup, EngineFailure, type NetworkPolicy } from "../../engine.ts";
import { sorted } from "./addresses.ts";

type Rule = NetworkPolicy["rules"][number];
type Protocol = Rule["protocols"][number];
export type Direction = "egress" | "ingress";

/**
 * The rules of one direction, first match first, its default last. Pure.
 * @throws EngineFailure for a destination that is a name
 */
export function chainOf(policy: NetworkPolicy, direction: Direction): string[] {
  const fallback = direction === "egress" ? policy.defaultEgress : policy.defaultIngress;
  return [
    ...rulesOf(policy, direction).flatMap((rule) => lines(rule, direction)),
    verdict(fallback, direction),
  ];
}

/**
 * Whether a question for a name may be asked by this protocol. The daemon's resolver stands for DNS on the host: rules
 * about the host and about anybody are about it, rules about addresses are not. Pure.
 */
export function allowsDns(policy: NetworkPolicy, protocol: "tcp" | "udp"): boolean {
  const first = rulesOf(policy, "egress").find(
    ({ destination, ports, protocols }) =>
      (destination.kind === "any" ||
        (destination.kind === "group" && destination.value === "host")) &&
      (protocols.length === 0 || protocols.includes(protocol)) &&
      (ports.length === 0 || ports.some(({ start, end }) => start <= 53 && 53 <= end)),
  );
  return (first?.action ?? policy.defaultEgress) === "allow";
}

function rulesOf({ rules }: NetworkPolicy, wanted: Direction): Rule[] {
  return rules.filter(({ direction }) => direction === wanted || direction === "any");
}

function lines(rule: Rule, direction: Direction): string[] {
  const end = verdict(rule.action, direction);
  const peer = direction === "egress" ? "daddr" : "saddr";
  return peers(rule.destination, peer).flatMap((who) =>
    payloads(rule).map((what) => [who, what, end].filter((part) => part !== "").join(" ")),
  );
}

// The other end is told where it is the sandbox's own program that asks, and nothing where it is a stranger.
function verdict(action: Rule["action"], direction: Direction): string {
  if (action === "allow") return "goto admit";
  return direction === "egress" ? "goto refuse" : "goto ignore";
}

function peers(destination: Rule["destination"], address: string): string[] {
  switch (destination.kind) {
    case "any":
      return [""];
    case "cidr": {
      const { v4, v6 } = sorted([destination.value]);
      return [
        ...v4.map((prefix) => `ip ${address} ${prefix}`),
        ...v6.map((prefix) => `ip6 ${address} ${prefix}`),
      ];
    }
    case "group":
      return [group("ip", "4", destination.value), group("ip6", "6", destination.value)].map(
        (match) => match.replaceAll("ADDRESS", address),
      );
    default:
      throw new EngineFailure("network.policy: rules about domains are not supported here");
  }
}

// Each address is in one group at most: the host's own come first, metadata before link-local.
function group(family: string, suffix: string, name: DestinationGroup): string {
  const is = (set: string) => `${family} ADDRESS @${set}${suffix}`;
  const isNot = (set: string) => `${family} ADDRESS != @${set}${suffix}`;
  if (name === "public") return isNot("not_public");
  if (name === "host") return is("host");
  const before = name === "link_local" ? ["host", "metadata"] : ["host"];
  return [is(name), ...before.map(isNot)].join(" ");
}

function payloads({ ports, protocols }: Rule): string[] {
  if (ports.length > 0) {
    const wanted = protocols.length === 0 ? ["tcp", "udp"] : protocols.filter(hasPorts);
    if (wanted.length === 0) return [];
    return [`meta l4proto { ${wanted.join(", ")} } th dport { ${portSet(ports).join(", ")} }`];
  }
  if (protocols.length === 0) return [""];
  return protocols.map((protocol) => PROTOCOLS[protocol]);
}

// nft refuses ranges that overlap.
function portSet(ports: Rule["ports"]): string[] {
  const merged: Rule["ports"] = [];
  for (const { start, end } of ports.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last && start <= last.end + 1) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged.map(({ start, end }) => (start === end ? `${start}` : `${start}-${end}`));
}

const PROTOCOLS: Record<Protocol, string> = {
  tcp: "meta l4proto tcp",
  udp: "meta l4proto udp",
  icmpv4: "meta nfproto ipv4 meta l4proto icmp",
  icmpv6: "meta nfproto ipv6 meta l4proto ipv6-icmp",
};

function hasPorts(protocol: Protocol): boolean {
  return protocol === "tcp" || protocol === "udp";
}
