import type { EngineSpec, NetworkPolicy } from "../../engine.ts";
import { type Addresses, fixedGroup, nowhere, sorted, withEmbedded } from "./addresses.ts";
import { allowsDns, chainOf } from "./rules.ts";

/** What a ruleset depends on beyond the sandbox's own policy; single addresses but for `neighbours`. */
export interface NetworkFacts {
  /** Of the sandbox's gateway, and every other address of the host. */
  hosts: string[];
  /** Prefixes that the sandbox shares with others on its bridge. */
  neighbours: string[];
  /** Where the daemon asks, from within the sandbox's network, what it is asked for names. */
  resolvers: string[];
}

/** What stands for no policy: see the contract. */
export const DEFAULT_POLICY: NetworkPolicy = {
  defaultEgress: "deny",
  defaultIngress: "allow",
  rules: [
    {
      direction: "egress",
      destination: { kind: "group", value: "host" },
      action: "allow",
      ports: [{ start: 53, end: 53 }],
      protocols: ["tcp", "udp"],
    },
    {
      direction: "egress",
      destination: { kind: "group", value: "public" },
      action: "allow",
      ports: [],
      protocols: [],
    },
  ],
};

/** The name of the table that holds a sandbox's rules. */
export const TABLE = "inet sandgate";
/** The daemon's resolver in the sandbox's own network namespace. */
const RESOLVER = "127.0.0.11";
// The most that nftables counts to, and more than a host can hold.
const CONNECTIONS_MAX = 0xffff_ffff;

/**
 * A sandbox's whole ruleset: the table, as `nft -f` reads it. Pure.
 * @throws EngineFailure where the policy cannot be expressed
 */
export function ruleset(network: EngineSpec["network"], facts: NetworkFacts): string {
  const policy = network.policy ?? DEFAULT_POLICY;
  return [
    `table ${TABLE} {`,
    ...sets(facts),
    ...chain("refuse", ["reject with icmpx admin-prohibited"]),
    ...chain("ignore", ["drop"]),
    ...chain("admit", admit(network.maxConnections)),
    ...chain("egress", chainOf(policy, "egress")),
    ...chain("ingress", chainOf(policy, "ingress")),
    ...chain("output", output(policy)),
    ...chain("input", input()),
    ...chain("forward", [hook("forward")]),
    "}",
    "",
  ].join("\n");
}

function sets({ hosts, neighbours, resolvers }: NetworkFacts): string[] {
  const host = withEmbedded(sorted(hosts));
  const lists: Record<string, Addresses> = {
    host,
    neighbours: sorted(neighbours),
    resolvers: sorted(resolvers),
    metadata: fixedGroup("metadata"),
    loopback: fixedGroup("loopback"),
    private: join(fixedGroup("private"), withEmbedded(sorted(neighbours))),
    link_local: fixedGroup("link_local"),
    multicast: fixedGroup("multicast"),
  };
  const { resolvers: _, ...groups } = lists;
  lists.not_public = join(nowhere(), ...Object.values(groups));
  return Object.entries(lists).flatMap(([name, { v4, v6 }]) => [
    ...set(`${name}4`, "ipv4_addr", v4),
    ...set(`${name}6`, "ipv6_addr", v6),
  ]);
}

function join(...lists: Addresses[]): Addresses {
  return { v4: lists.flatMap(({ v4 }) => v4), v6: lists.flatMap(({ v6 }) => v6) };
}

function set(name: string, type: string, elements: string[]): string[] {
  const content = elements.length > 0 ? [`elements = { ${elements.join(", ")} }`] : [];
  return block(`set ${name}`, [`type ${type}`, "flags interval", "auto-merge", ...content]);
}

function chain(name: string, rules: string[]): string[] {
  return block(`chain ${name}`, rules);
}

function block(head: string, lines: string[]): string[] {
  return [`  ${head} {`, ...lines.map((line) => `    ${line}`), "  }"];
}

// Before Docker's own translation of addresses (-100), so that its resolver is seen by its address.
function hook(name: string): string {
  return `type filter hook ${name} priority -150; policy drop;`;
}

// Established: what was admitted in either direction has its answers. Errors come as related.
const ANSWERS = [
  "ct state established accept",
  "ct state related meta l4proto { icmp, ipv6-icmp } accept",
];
// IPv6 is mute without; only the kernel, or who has NET_RAW, can send any of it.
const DISCOVERY = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 hoplimit 255 accept";

function output(policy: NetworkPolicy): string[] {
  const dns = (["tcp", "udp"] as const).filter((protocol) => allowsDns(policy, protocol));
  const port = `meta l4proto { ${dns.join(", ")} } th dport 53`;
  return [
    hook("output"),
    // A packet that names its way goes elsewhere than its destination says.
    "ip option lsrr exists goto refuse",
    "ip option ssrr exists goto refuse",
    "exthdr rt exists goto refuse",
    ...ANSWERS,
    ...(dns.length > 0 ? [`ip daddr ${RESOLVER} ${port} accept`] : []),
    `ip daddr ${RESOLVER} goto refuse`,
    'oif "lo" accept',
    DISCOVERY,
    ...neighbours("daddr", "refuse"),
    ...(dns.length > 0
      ? [`ip daddr @resolvers4 ${port} goto admit`, `ip6 daddr @resolvers6 ${port} goto admit`]
      : []),
    "goto egress",
  ];
}

function input(): string[] {
  return [
    hook("input"),
    'iif "lo" accept',
    ...ANSWERS,
    DISCOVERY,
    ...neighbours("saddr", "ignore"),
    "goto ingress",
  ];
}

// Whatever the policy says: on the link there is nobody but the host and other sandboxes.
function neighbours(address: string, verdict: string): string[] {
  return [
    `ip ${address} @neighbours4 ip ${address} != @host4 goto ${verdict}`,
    `ip6 ${address} @neighbours6 ip6 ${address} != @host6 goto ${verdict}`,
    `ip6 ${address} fe80::/10 ip6 ${address} != @host6 goto ${verdict}`,
  ];
}

// Of both directions together, since there is one such rule.
function admit(maxConnections: number | null): string[] {
  if (maxConnections === null) return ["accept"];
  const most = Math.min(maxConnections, CONNECTIONS_MAX);
  return [`meta l4proto tcp ct state new ct count over ${most} reject with tcp reset`, "accept"];
}
