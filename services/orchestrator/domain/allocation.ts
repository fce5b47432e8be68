import type { OrchestratorContext } from "../context.ts";
import { type Allocation, EngineFailure, type RegistryCredentials } from "../engines/engine.ts";
import type { DueRun } from "../store.ts";

/**
 * What the engine needs for a run, with its credentials opened.
 * @throws EngineFailure where they cannot be
 */
export function allocationOf(ctx: OrchestratorContext, run: DueRun): Allocation {
  const { sandboxId, orgId, generation, name, spec } = run;
  return { sandboxId, orgId, generation, name, spec, registry: credentialsOf(ctx, run) };
}

function credentialsOf(ctx: OrchestratorContext, run: DueRun): RegistryCredentials {
  const { mode } = run.spec.registry;
  if (mode !== "inline") return { mode };
  try {
    if (!run.sealed) throw new Error("the row of sealed parts is missing");
    const opened = Buffer.from(ctx.unseal(run.sealed, run.sandboxId)).toString();
    // Sealed by the sandbox service; see SealedSpec there.
    const { registry } = JSON.parse(opened) as { registry: { username: string; password: string } };
    return { mode, ...registry };
  } catch (error) {
    ctx.log.error({ err: error, sandboxId: run.sandboxId }, "sealed credentials cannot be opened");
    throw new EngineFailure("the registry credentials cannot be opened any more");
  }
}
