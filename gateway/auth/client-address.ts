import { isIP, isIPv4 } from "node:net";
import type { FastifyRequest } from "fastify";

/** Whose guesses are counted together: an IPv4 address, or a network of 64 bits, which is what one client has of IPv6. */
export function sourceOf({ ip, raw }: Pick<FastifyRequest, "ip" | "raw">): string {
  // What a proxy says may be no address; then it is the proxy itself.
  return networkOf(ip) ?? networkOf(raw.socket.remoteAddress) ?? "unknown";
}

/** Undefined where it is no IP address, with or without a port. */
function networkOf(text: string | undefined): string | undefined {
  const address = withoutPort(text ?? "").split("%")[0] ?? "";
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return networkOf6(address);
    default:
      return undefined;
  }
}

function withoutPort(text: string): string {
  const [, bare] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? [];
  return bare ?? text;
}

function networkOf6(address: string): string {
  const groups = groupsOf(address);
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (!mapped)
    return `${groups
      .slice(0, 4)
      .map((group) => group.toString(16))
      .join(":")}::/64`;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join(".");
}

/** The eight numbers of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = [], tail] = address.split("::").map(groupsOfPart);
  if (!tail) return head;
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function groupsOfPart(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    if (!isIPv4(group)) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
