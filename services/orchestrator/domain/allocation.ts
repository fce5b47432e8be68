import type { LeadingContext } from "../context.ts";
import { type Allocation, EngineFailure, type Patch } from "../engines/engine.ts";
import type { StartingRun } from "../store.ts";

/** What the sandbox service sealed, as far as engines need it; see SealedSpec there. */
interface Sealed {
  patches: Patch[];
  registry: { username: string; password: string } | null;
}

/**
 * What the engine needs for a run, with its sealed parts opened.
 * @throws EngineFailure where they cannot be
 */
export function allocationOf(ctx: LeadingContext, run: StartingRun): Allocation {
  const { sandboxId, orgId, generation, name, spec } = run;
  const { patches, registry: inline } = open(ctx, run);
  const { mode } = spec.registry;
  if (mode === "inline" && !inline) throw unreadable(ctx, run, new Error("no credentials"));
  const registry = mode === "inline" && inline ? { mode, ...inline } : { mode: plain(mode) };
  const { volumes } = run;
  return { sandboxId, orgId, generation, name, spec, patches, volumes, registry };
}

function plain(mode: StartingRun["spec"]["registry"]["mode"]): "auto" | "anonymous" {
  return mode === "anonymous" ? mode : "auto";
}

// A spec with nothing to hide has no sealed part.
function open(ctx: LeadingContext, run: StartingRun): Sealed {
  if (!run.sealed) return { patches: [], registry: null };
  try {
    return JSON.parse(Buffer.from(ctx.unseal(run.sealed, run.sandboxId)).toString()) as Sealed;
  } catch (error) {
    throw unreadable(ctx, run, error);
  }
}

function unreadable(ctx: LeadingContext, { sandboxId }: StartingRun, err: unknown): EngineFailure {
  ctx.log.error({ err, sandbox_id: sandboxId }, "the sealed parts of a spec cannot be opened");
  return new EngineFailure("the sealed parts of its spec cannot be opened any more");
}
