import { callAllowing } from "./call.ts";
import type { DockerContext } from "./context.ts";
import { LABELS, networkName } from "./names.ts";

/**
 * Makes the installation's bridge where it is missing. It is its own, so that nothing else on this host is
 * a sandbox's neighbour, and no sandbox can reach another through it.
 */
export async function ensureNetwork(ctx: DockerContext, signal: AbortSignal): Promise<void> {
  const Name = networkName(ctx.installationId);
  const network = ctx.docker.getNetwork(Name);
  const found = await callAllowing([404], () => network.inspect(), { signal });
  if (found) return;
  const wanted = {
    Name,
    CheckDuplicate: true,
    Driver: "bridge",
    Options: { "com.docker.network.bridge.enable_icc": "false" },
    Labels: { [LABELS.installation]: ctx.installationId },
  };
  // 409: somebody made it meanwhile.
  await callAllowing([409], (options) => ctx.docker.createNetwork({ ...wanted, ...options }), {
    signal,
  });
}
