import { describe, expect, it, test } from "vitest";
import { withEmbedded } from "../../services/orchestrator/engines/docker/policy/addresses.ts";
import {
  nameservers,
  parseFibTrie,
  parseIfInet6,
  statedResolvers,
} from "../../services/orchestrator/engines/docker/policy/facts.ts";
import { allowsDns, chainOf } from "../../services/orchestrator/engines/docker/policy/rules.ts";
import {
  DEFAULT_POLICY,
  ruleset,
} from "../../services/orchestrator/engines/docker/policy/ruleset.ts";
import type { NetworkPolicy } from "../../services/orchestrator/engines/engine.ts";

type Rule = NetworkPolicy["rules"][number];

const FACTS = { hosts: ["172.18.0.1"], neighbours: ["172.18.0.2/16"], resolvers: ["10.0.0.53"] };
const ANY = { kind: "any" } as const;
const rule = (destination: Rule["destination"], rest: Partial<Rule> = {}): Rule => ({
  direction: "egress",
  destination,
  action: "allow",
  ports: [],
  protocols: [],
  ...rest,
});
const policy = (...rules: Rule[]): NetworkPolicy => ({
  defaultEgress: "deny",
  defaultIngress: "deny",
  rules,
});

describe("a chain", () => {
  it("has what is about its direction, in order, and its default last", () => {
    const both = policy(
      rule({ kind: "cidr", value: "10.0.0.0/8" }, { direction: "any" }),
      rule({ kind: "cidr", value: "fd00::/8" }, { direction: "ingress", action: "deny" }),
      rule(ANY, { protocols: ["tcp"] }),
    );
    expect(chainOf(both, "egress")).toEqual([
      "ip daddr 10.0.0.0/8 goto admit",
      "meta l4proto tcp goto admit",
      "goto refuse",
    ]);
    expect(chainOf(both, "ingress")).toEqual([
      "ip saddr 10.0.0.0/8 goto admit",
      "ip6 saddr fd00::/8 goto ignore",
      "goto ignore",
    ]);
  });

  it("takes ports without protocols for those of TCP and UDP, and merges what overlaps", () => {
    const ports = [
      { start: 90, end: 100 },
      { start: 1, end: 1 },
      { start: 95, end: 120 },
      { start: 121, end: 130 },
    ];
    expect(chainOf(policy(rule(ANY, { ports })), "egress")[0]).toBe(
      "meta l4proto { tcp, udp } th dport { 1, 90-130 } goto admit",
    );
    const icmp = rule(ANY, { ports, protocols: ["icmpv4", "udp"] });
    expect(chainOf(policy(icmp), "egress")[0]).toBe(
      "meta l4proto { udp } th dport { 1, 90-130 } goto admit",
    );
    const none = rule(ANY, { ports, protocols: ["icmpv6"] });
    expect(chainOf(policy(none), "egress")).toEqual(["goto refuse"]);
  });

  it("refuses what is no prefix, and names", () => {
    for (const value of ["10.0.0.0/33", "10.0.0.0/8; drop", "fe80::1%eth0/64", "::/129", "a/8", ""])
      expect(() => chainOf(policy(rule({ kind: "cidr", value })), "egress"), value).toThrow();
    const name = rule({ kind: "domain", value: "example.com" });
    expect(() => chainOf(policy(name), "egress")).toThrow(/domains/);
  });
});

test("names may be asked for where a rule about the host or anybody says so first", () => {
  expect(allowsDns(DEFAULT_POLICY, "udp")).toBe(true);
  expect(allowsDns(policy(), "udp")).toBe(false);
  expect(allowsDns({ ...policy(), defaultEgress: "allow" }, "tcp")).toBe(true);
  const host = { kind: "group", value: "host" } as const;
  const tcp = policy(rule(host, { protocols: ["tcp"], ports: [{ start: 50, end: 60 }] }));
  expect([allowsDns(tcp, "tcp"), allowsDns(tcp, "udp")]).toEqual([true, false]);
  const denied = policy(rule(ANY, { action: "deny", protocols: ["udp"] }), rule(host));
  expect([allowsDns(denied, "tcp"), allowsDns(denied, "udp")]).toEqual([true, false]);
  const prefix = policy(rule({ kind: "cidr", value: "0.0.0.0/0" }));
  expect(allowsDns(prefix, "udp")).toBe(false);
  const elsewhere = policy(rule(host, { ports: [{ start: 80, end: 80 }] }));
  expect(allowsDns(elsewhere, "udp")).toBe(false);
});

test("a prefix is also meant where IPv6 packets are translated to it", () => {
  expect(withEmbedded({ v4: ["10.0.0.0/8", "169.254.169.254/32"], v6: [] }).v6).toEqual([
    "64:ff9b::a00:0/104",
    "2002:a00:0::/24",
    "64:ff9b::a9fe:a9fe/128",
    "2002:a9fe:a9fe::/48",
  ]);
});

test("connections are counted only where there is a most of them", () => {
  const text = (maxConnections: number | null) =>
    ruleset({ enabled: true, policy: null, maxConnections }, FACTS);
  expect(text(null)).not.toContain("ct count");
  expect(text(7)).toContain("ct count over 7 reject");
  expect(text(2 ** 53 - 1)).toContain("ct count over 4294967295 reject");
});

test("the facts are read from the kernel's and the resolver's own words", () => {
  const trie = "  |-- 10.0.0.0\n     /8 link UNICAST\n  |-- 10.1.2.3\n     /32 host LOCAL\n";
  expect(parseFibTrie(`${trie}${trie}`)).toEqual(["10.1.2.3"]);
  const inet6 = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n";
  expect(parseIfInet6(inet6)).toEqual(["fe80:0000:0000:0000:00fc:00ff:fe00:0001"]);
  expect(
    nameservers("search x\nnameserver 10.0.0.1\n nameserver ::1\n#nameserver 9.9.9.9"),
  ).toEqual(["10.0.0.1", "::1"]);
  const stated = "nameserver 127.0.0.11\n# ExtServers: [10.0.0.2 host(127.0.0.53)]\n";
  expect(statedResolvers(stated)).toEqual(["10.0.0.2"]);
  expect(statedResolvers("nameserver 127.0.0.11")).toBeUndefined();
});
