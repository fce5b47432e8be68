import { isIPv4, isIPv6 } from "node:net";
import { type DestinationGroup, EngineFailure } from "../../engine.ts";

/** Prefixes and single addresses, by the family of the packets that carry them. */
export interface Addresses {
  v4: string[];
  v6: string[];
}

/** The groups that consist of the same addresses everywhere. */
export type FixedGroup = Exclude<DestinationGroup, "public" | "host">;

const FIXED: Record<FixedGroup, Addresses> = {
  metadata: { v4: ["169.254.169.254/32"], v6: [] },
  loopback: { v4: ["127.0.0.0/8"], v6: ["::1/128"] },
  private: {
    v4: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"],
    v6: ["fc00::/7"],
  },
  link_local: { v4: ["169.254.0.0/16"], v6: ["fe80::/10"] },
  multicast: { v4: ["224.0.0.0/4"], v6: ["ff00::/8"] },
};

/**
 * In no group, so that they do not pass as public: addresses that nobody on the internet has, that lead to
 * others in a way that depends on the network around, and Azure's platform, which answers only its own machines.
 */
const NOWHERE: Addresses = {
  v4: ["0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "168.63.129.16/32"],
  v6: ["::/96", "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "fec0::/10"],
};

/** Those that are in a group of their own, and others that lead to them by NAT64 or 6to4. Pure. */
export function fixedGroup(group: FixedGroup): Addresses {
  return withEmbedded(FIXED[group]);
}

/** Pure. */
export function nowhere(): Addresses {
  return withEmbedded(NOWHERE);
}

/** The same with the IPv6 prefixes that translators and relays take for the IPv4 ones. Pure. */
export function withEmbedded({ v4, v6 }: Addresses): Addresses {
  return { v4, v6: [...v6, ...v4.flatMap((prefix) => [nat64(prefix), sixToFour(prefix)])] };
}

// RFC 6052
function nat64(prefix: string): string {
  const { high, low, bits } = halves(prefix);
  return `64:ff9b::${high}:${low}/${96 + bits}`;
}

// RFC 3056
function sixToFour(prefix: string): string {
  const { high, low, bits } = halves(prefix);
  return `2002:${high}:${low}::/${16 + bits}`;
}

function halves(prefix: string): { high: string; low: string; bits: number } {
  const [address = "", bits = "32"] = prefix.split("/");
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = (high: number, low: number) => (high * 256 + low).toString(16);
  return { high: hex(a, b), low: hex(c, d), bits: Number(bits) };
}

/**
 * Sorts addresses and prefixes by family. Pure.
 * @throws EngineFailure where one is neither: only what is known to be an address becomes part of a rule
 */
export function sorted(texts: readonly string[]): Addresses {
  const v4 = texts.filter((text) => isPrefix(text, isIPv4, 32));
  const v6 = texts.filter((text) => isPrefix(text, isIPv6, 128));
  const other = texts.find((text) => !v4.includes(text) && !v6.includes(text));
  if (other !== undefined) throw new EngineFailure(`'${other}' is no IP address or prefix`);
  return { v4, v6 };
}

function isPrefix(text: string, isAddress: (text: string) => boolean, most: number): boolean {
  const [address = "", bits = "0", ...more] = text.split("/");
  // A zone would name an interface.
  if (more.length > 0 || address.includes("%") || !isAddress(address)) return false;
  return /^\d{1,3}$/.test(bits) && Number(bits) <= most;
}
