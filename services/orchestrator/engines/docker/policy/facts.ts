import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { ContainerInspectInfo } from "dockerode";
import type { HostProcess } from "../gate/held-process.ts";
import type { NetworkFacts } from "./ruleset.ts";

const RESOLV_CONF = "/etc/resolv.conf";
/** Where systemd's resolver, when it is the host's, keeps what it asks itself; the daemon looks there too. */
const BEHIND_SYSTEMD = "/run/systemd/resolve/resolv.conf";
const SYSTEMD = "127.0.0.53";
/** What the daemon asks where the host names nobody. */
const FALLBACK = ["8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"];

/**
 * Finds out what the rules of a container that has just been started depend on.
 * @param first its first process
 * @param host the parent of that, in the network of the daemon's host
 * @throws Error where it is not
 */
export async function networkFacts(
  container: ContainerInspectInfo,
  first: HostProcess,
  host: HostProcess,
): Promise<NetworkFacts> {
  if ((await first.link("ns/net")) === (await host.link("ns/net")))
    throw new Error("the host's network is not to be seen from a container's parent process");
  const networks = Object.values(container.NetworkSettings.Networks);
  const gateways = networks.flatMap(({ Gateway, IPv6Gateway }) => [Gateway, IPv6Gateway]);
  const neighbours = networks.flatMap((network) => [
    prefix(network.IPAddress, network.IPPrefixLen),
    prefix(network.GlobalIPv6Address, network.GlobalIPv6PrefixLen),
  ]);
  const [local, resolvers] = await Promise.all([
    localAddresses(host),
    resolversOf(container.ResolvConfPath),
  ]);
  return {
    hosts: [...new Set([...gateways.filter((address) => isIP(address ?? "") > 0), ...local])],
    neighbours: neighbours.filter((text) => text !== undefined),
    resolvers,
  };
}

// The daemon has "" and 0 for what a network has not.
function prefix(address: string | undefined, bits: number | undefined): string | undefined {
  return address ? `${address}/${bits ?? 0}` : undefined;
}

/** Every address of the host but loopback, which a sandbox has of its own. */
async function localAddresses(host: HostProcess): Promise<string[]> {
  const [v4, v6] = await Promise.all([
    host.read("net/fib_trie"),
    readIfThere(host, "net/if_inet6"),
  ]);
  const all = [...parseFibTrie(v4.toString()), ...parseIfInet6(v6)];
  return all.filter((address) => !address.startsWith("127.") && !/^(0+:){7}0*1$/.test(address));
}

// A host without IPv6 has no such file.
async function readIfThere(host: HostProcess, name: string): Promise<string> {
  try {
    return (await host.read(name)).toString();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

/** The local addresses in the kernel's routing table. Pure. */
export function parseFibTrie(text: string): string[] {
  const found = text.matchAll(/\|-- ([\d.]+)\n\s+\/32 host LOCAL/g);
  return [...new Set([...found].map(([, address = ""]) => address))];
}

/** Pure. */
export function parseIfInet6(text: string): string[] {
  const found = text.matchAll(/^([0-9a-f]{32}) /gm);
  return [...found].map(([, digits = ""]) => digits.match(/.{4}/g)?.join(":") ?? "");
}

async function resolversOf(resolvConfPath: string): Promise<string[]> {
  const stated = statedResolvers(await readText(resolvConfPath));
  if (stated) return stated;
  const first = nameservers(await readText(RESOLV_CONF));
  const isSystemd = first.length === 1 && first[0] === SYSTEMD;
  const own = isSystemd ? nameservers(await readText(BEHIND_SYSTEMD)) : first;
  // One on loopback is asked from the host itself.
  const outside = own.filter((address) => !address.startsWith("127.") && address !== "::1");
  return own.length === 0 ? FALLBACK : outside;
}

/** What newer daemons say in the container's own file about whom they ask from within it. Pure. */
export function statedResolvers(text: string): string[] | undefined {
  const stated = /^# ExtServers: \[(.*)\]$/m.exec(text)?.[1];
  return stated?.split(" ").filter((address) => isIP(address) > 0);
}

/** Pure. */
export function nameservers(text: string): string[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  return found.filter((address) => isIP(address) > 0 && !address.includes("%"));
}

async function readText(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}
