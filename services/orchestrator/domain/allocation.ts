import type { OrchestratorContext } from "../context.ts";
import type { Allocation, RegistryCredentials } from "../engines/engine.ts";
import type { DueRun } from "../store.ts";

/** What the engine needs for a run, with its credentials opened. */
export function allocationOf(ctx: OrchestratorContext, run: DueRun): Allocation {
  const { sandboxId, orgId, generation, name, spec } = run;
  return { sandboxId, orgId, generation, name, spec, registry: credentialsOf(ctx, run) };
}

function credentialsOf(ctx: OrchestratorContext, run: DueRun): RegistryCredentials {
  const { mode } = run.spec.registry;
  if (mode !== "inline") return { mode };
  if (!run.sealed) throw new Error("inline credentials are missing");
  const opened = Buffer.from(ctx.unseal(run.sealed, run.sandboxId)).toString();
  // Sealed by the sandbox service; see SealedSpec there.
  const { registry } = JSON.parse(opened) as { registry: { username: string; password: string } };
  return { mode, ...registry };
}
