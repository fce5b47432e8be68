import { type FieldFault, ServiceError } from "../../../runtime/errors.ts";
import type { SandboxContext } from "../context.ts";
import { type Action, HOLDS_COMPUTE, refuses } from "./lifecycle.ts";
import { overQuota } from "./quotas.ts";
import { requirements, unsupported } from "./requirements.ts";
import type { Sandbox, SandboxKey } from "./sandbox.ts";

export function notFound(): ServiceError {
  return new ServiceError("SANDBOX_NOT_FOUND", "no such sandbox");
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
  const faults = unsupported(needs, engine.features);
  if (faults.length > 0) return invalidConfig(inSpec(faults));
  const standing = await ctx.store.findStanding(sandbox.orgId);
  return overQuota(standing, { spec: sandbox.spec, create: false, start: true });
}
