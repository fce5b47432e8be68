import { lookup } from "node:dns/promises";
import { BlockList, isIPv6 } from "node:net";
import type { RpcConfig } from "../runtime/config.ts";
import { codeOf } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Logger } from "../runtime/log.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/**
 * A port that other machines reach takes credentials that somebody has chosen; a warning where they travel readable.
 * @throws StartupError where there are none, or the host is not known
 */
export async function refuseExposure(
  { host, serviceToken, tls }: Pick<RpcConfig, "host" | "serviceToken" | "tls">,
  log: Pick<Logger, "warn">,
): Promise<void> {
  if (tls || (await isLoopback(host))) return;
  if (serviceToken === undefined)
    throw new StartupError(
      `RPC_HOST=${host} is reached from other machines: set SERVICE_TOKEN, or TLS_CERT, TLS_KEY and TLS_CA`,
    );
  log.warn(
    { host },
    "the RPC port speaks no TLS: keep it on a network of its own, or set TLS_CERT",
  );
}

/**
 * Whether all that a host name stands for is this machine alone.
 * @throws StartupError where nobody knows now, for the listener may be told otherwise
 */
async function isLoopback(host: string): Promise<boolean> {
  const addresses = await lookup(host, { all: true }).catch((error: unknown) => {
    throw new StartupError(`The host ${host} (RPC_HOST) is not known: ${codeOf(error)}`);
  });
  return addresses.every(({ address }) =>
    loopback.check(address, isIPv6(address) ? "ipv6" : "ipv4"),
  );
}
