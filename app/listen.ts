import { X509Certificate } from "node:crypto";
import { type AddressInfo, isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { BACKLOG } from "../runtime/backlog.ts";
import { codeOf } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";
import type { TlsMaterial } from "../runtime/tls/certificate.ts";

/** Where a server listens; port 0: any free one. */
export interface Address {
  host: string;
  port: number;
  /** What the server speaks TLS with; undefined: it speaks none. */
  tls?: Pick<TlsMaterial, "cert"> | undefined;
}

/**
 * Opens a server's port.
 * @param settings the variables that set it, for the operator
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had
 */
export async function listen(
  app: FastifyInstance,
  { host, port, tls }: Address,
  settings: string,
): Promise<string> {
  try {
    await app.listen({ host, port, backlog: BACKLOG });
  } catch (error) {
    throw new StartupError(`${whyNot(error, host, port)} (${settings} set it)`);
  }
  // A server that listens on TCP has an address of this kind.
  return urlOf(host, (app.server.address() as AddressInfo).port, tls);
}

function whyNot(error: unknown, host: string, port: number): string {
  const reasons: Record<string, string> = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not open it",
    EADDRNOTAVAIL: "this machine has no such address",
    ENOTFOUND: "no such host is known",
  };
  const code = codeOf(error);
  return `The port ${port} on ${host} cannot be opened: ${reasons[code] ?? code}`;
}

/** Of a port, as a program on this machine reaches it; with TLS by a name that its certificate is good for. */
export function urlOf(host: string, port: number, tls?: Pick<TlsMaterial, "cert">): string {
  const address = addressOf(host);
  const reachable = tls ? certifiedName(tls, address) : address;
  const authority = reachable.includes(":") ? `[${reachable}]` : reachable;
  return `${tls ? "https" : "http"}://${authority}:${port}`;
}

/** Of a host that a server listens on, as a program on this machine reaches it. */
export function addressOf(host: string): string {
  return { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
}

/** Where the certificate is of other hosts, the first of their names. */
function certifiedName({ cert }: Pick<TlsMaterial, "cert">, address: string): string {
  const certificate = new X509Certificate(cert);
  const fits = isIP(address) ? certificate.checkIP(address) : certificate.checkHost(address);
  if (fits !== undefined) return address;
  const names = certificate.subjectAltName?.matchAll(/DNS:([\w.-]+)/g) ?? [];
  const [first] = [...names].map(([, name]) => name);
  return first ?? address;
}
