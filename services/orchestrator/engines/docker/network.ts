import { call } from "./call.ts";
import type { DockerContext } from "./context.ts";
import { ensureNetwork } from "./ensure-network.ts";
import type { Machine } from "./machines.ts";
import { networkName } from "./names.ts";

/**
 * Makes sure that the installation's bridge is there for this machine. It is its own, so that nothing else on
 * this host is a sandbox's neighbour, and no sandbox can reach another through it.
 */
export async function joinNetwork(
  ctx: DockerContext,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  const name = networkName(ctx.installationId);
  const id = await ensureNetwork(ctx, signal);
  const joined = machine.container.NetworkSettings.Networks[name]?.NetworkID;
  if (!joined || joined === id) return;
  // A container holds on to a network that a prune took away while it was down.
  const Container = machine.containerId;
  const network = ctx.docker.getNetwork(id);
  await call((options) => network.disconnect({ Container, Force: true, ...options }), { signal });
  await call((options) => network.connect({ Container, ...options }), { signal });
}
