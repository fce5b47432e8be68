import { type FieldFault, ServiceError } from "../../../runtime/errors.ts";
import type { SandboxContext } from "../context.ts";
import { type Action, HOLDS_COMPUTE, refuses } from "./lifecycle.ts";
import { missingVolumes } from "./mounted-volumes.ts";
import { overQuota } from "./quotas.ts";
import { requirements, unsupported } from "./requirements.ts";
import type { Sandbox, SandboxKey } from "./sandbox.ts";

const MOST_TRIES = 10;

/**
 * Does what a statement may refuse. What stands in the way is read after the refusal, so it may be gone by then: then
 * once more.
 * @param attempt undefined: it was refused
 * @param why undefined: nothing stands in the way any more
 */
export async function untilRefused<Done>(
  attempt: () => Promise<Done | undefined>,
  why: () => Promise<ServiceError | undefined>,
): Promise<Done> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const done = await attempt();
    if (done) return done;
    const refused = await why();
    if (refused) throw refused;
  }
  throw new ServiceError("SERVICE_UNAVAILABLE", "it is changed all the time; try again");
}

export function notFound(): ServiceError {
  return new ServiceError("SANDBOX_NOT_FOUND", "no such sandbox");
}

export function orgNotFound(): ServiceError {
  return new ServiceError("ORG_NOT_FOUND", "no such organization");
}

export function unreachable(): ServiceError {
  return new ServiceError("ORCHESTRATOR_UNREACHABLE", "no orchestrator answers");
}

export function invalidConfig(faults: readonly FieldFault[]): ServiceError {
  const first = faults[0];
  const message = first ? `${first.field} ${first.message}` : "not supported here";
  return new ServiceError("INVALID_SANDBOX_CONFIG", message, { faults });
}

/** Faults of a spec, as paths of the request that carries it. */
export function inSpec(faults: readonly FieldFault[]): FieldFault[] {
  return faults.map(({ field, message }) => ({ field: `spec.${field}`, message }));
}

/** `field` is taken; for a name it says by whom. */
export async function nameTaken(
  ctx: SandboxContext,
  orgId: string,
  field: "name" | "slug",
  name: string,
): Promise<ServiceError> {
  const holder = field === "name" ? await ctx.store.findHolder(orgId, name) : undefined;
  const metadata = holder ? { field, sandbox_id: holder.id, status: holder.status } : { field };
  return new ServiceError("NAME_ALREADY_EXISTS", `'${field}' already exists`, { metadata });
}

/**
 * Why an admitting statement changed nothing, read afterwards.
 * @returns undefined where nothing stands in the way any more: then the verb tries again
 */
export async function whyRefused(
  ctx: SandboxContext,
  orgId: string,
  key: SandboxKey,
  action: Action,
): Promise<ServiceError | undefined> {
  const sandbox = await ctx.store.find(orgId, key);
  if (!sandbox) return notFound();
  if (refuses(action, sandbox)) {
    const metadata = { from: sandbox.status, action };
    return new ServiceError("INVALID_STATE_TRANSITION", "invalid state transition", { metadata });
  }
  return whyNotNow(ctx, action, sandbox);
}

async function whyNotNow(
  ctx: SandboxContext,
  action: Action,
  sandbox: Sandbox,
): Promise<ServiceError | undefined> {
  if (action === "destroy" && !HOLDS_COMPUTE.includes(sandbox.status)) return undefined;
  const engine = await ctx.store.findEngine();
  if (!engine?.alive) return unreachable();
  if (action !== "start") return undefined;
  const patches = await ctx.store.listPatchFeatures(sandbox.id);
  const needs = [
    ...requirements(sandbox.spec),
    ...patches.map((feature) => ({ feature, field: "patches" })),
  ];
  const there = await ctx.store.listMountedVolumes(sandbox.id);
  const faults = [
    ...unsupported(needs, engine.features),
    ...missingVolumes(sandbox.spec, there, "was deleted"),
  ];
  if (faults.length > 0) return invalidConfig(inSpec(faults));
  const standing = await ctx.store.findStanding(sandbox.orgId);
  return overQuota(standing, { spec: sandbox.spec, create: false, start: true });
}
