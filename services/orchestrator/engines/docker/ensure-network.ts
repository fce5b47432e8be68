import type { NetworkInspectInfo } from "dockerode";
import { EngineUnavailable } from "../engine.ts";
import { call, callAllowing, isStatus } from "./call.ts";
import type { DockerContext } from "./context.ts";
import { LABELS, networkName } from "./names.ts";

/**
 * The installation's one bridge, made where it is missing.
 * @returns its id
 */
export function ensureNetwork(ctx: DockerContext, signal: AbortSignal): Promise<string> {
  const name = networkName(ctx.installationId);
  return ctx.networks.do(name, signal, async (wanted) => {
    const found = await networksCalled(ctx, name, wanted);
    if (found.length === 0) await createNetwork(ctx, name, wanted);
    const networks = found.length === 0 ? await networksCalled(ctx, name, wanted) : found;
    return keepOne(ctx, networks, wanted);
  });
}

// A name is matched in part by the daemon's filter.
async function networksCalled(
  ctx: DockerContext,
  name: string,
  signal: AbortSignal,
): Promise<NetworkInspectInfo[]> {
  const filters = { name: [name] };
  const found = await call(() => ctx.docker.listNetworks({ filters }), { signal });
  return found
    .filter((network) => network.Name === name)
    .sort((a, b) => `${a.Created} ${a.Id}`.localeCompare(`${b.Created} ${b.Id}`));
}

async function createNetwork(ctx: DockerContext, name: string, signal: AbortSignal): Promise<void> {
  const wanted = {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    Options: { "com.docker.network.bridge.enable_icc": "false" },
    Labels: { [LABELS.installation]: ctx.installationId },
  };
  // 409: somebody made it meanwhile.
  const create = (options: { abortSignal: AbortSignal }) =>
    ctx.docker.createNetwork({ ...wanted, ...options });
  await callAllowing([409], create, { signal });
}

/**
 * Two creates at once, of two orchestrators or around a daemon's end, may make two networks of one name; the daemon then
 * starts nothing on either. One that machines are on cannot be removed, and stays.
 */
async function keepOne(
  ctx: DockerContext,
  networks: readonly NetworkInspectInfo[],
  signal: AbortSignal,
): Promise<string> {
  const kept = networks.map(({ Id }) => Id);
  for (const { Id } of networks.toReversed()) {
    if (kept.length > 1 && (await remove(ctx, Id, signal))) kept.splice(kept.indexOf(Id), 1);
  }
  const [one] = kept;
  if (one === undefined) throw new EngineUnavailable("the network vanished while it was made");
  return one;
}

/** @returns whether it is gone */
async function remove(ctx: DockerContext, id: string, signal: AbortSignal): Promise<boolean> {
  const network = ctx.docker.getNetwork(id);
  const gone = () => true;
  try {
    return await call(() => network.remove().then(gone), { signal });
  } catch (error) {
    if (isStatus(error, 404)) return true;
    if (isStatus(error, 403) || isStatus(error, 409)) return false;
    throw error;
  }
}
