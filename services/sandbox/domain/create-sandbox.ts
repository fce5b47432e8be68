import { v7 as uuidv7 } from "uuid";
import type { Caller } from "../../../runtime/caller.ts";
import type { SandboxContext } from "../context.ts";
import { type NewSandbox, takenField } from "../store.ts";
import { canonicalSpec } from "./canonical-spec.ts";
import { unknownReferences } from "./references.ts";
import { inSpec, invalidConfig, invalidRequest, nameTaken, unreachable } from "./refusals.ts";
import { patchRequirements, type Requirement, requirements, unsupported } from "./requirements.ts";
import type { Sandbox } from "./sandbox.ts";
import { generateSlug } from "./slug.ts";
import type { SandboxSpec, SealedSpec } from "./spec.ts";
import { sizeFaults } from "./spec-size.ts";

export interface CreateSandbox {
  /** Empty: the slug. */
  name: string;
  /** Null: generated. */
  slug: string | null;
  spec: SandboxSpec;
  sealed: SealedSpec;
  start: boolean;
}

// Of a hundred million slugs a few tries find a free one.
const SLUG_TRIES = 8;

/** Makes a sandbox and, where asked, admits its first start in the same statement. */
export async function createSandbox(
  ctx: SandboxContext,
  caller: Caller,
  input: CreateSandbox,
): Promise<Sandbox> {
  const faults = [...unknownReferences(input.spec), ...sizeFaults(input.spec)];
  if (faults.length > 0) throw invalidRequest(inSpec(faults));
  const needs = [...requirements(input.spec), ...patchRequirements(input.sealed.patches)];
  const spec = canonicalSpec(input.spec);
  for (let tries = 1; ; tries += 1) {
    const make = newSandbox(ctx, caller.orgId, { ...input, spec }, needs);
    try {
      const made = await ctx.store.create(make, caller.actor);
      if (!made) throw await whyNotMade(ctx, needs);
      announce(ctx, made, input.start);
      return made;
    } catch (error) {
      const field = takenField(error);
      if (!field) throw error;
      const generated = input.slug === null && (field === "slug" || input.name === "");
      if (!generated || tries === SLUG_TRIES)
        throw await nameTaken(ctx, caller.orgId, field, make.name);
    }
  }
}

function newSandbox(
  ctx: SandboxContext,
  orgId: string,
  { name, slug, spec, sealed, start }: CreateSandbox,
  needs: readonly Requirement[],
): NewSandbox {
  const id = uuidv7();
  const chosen = slug ?? generateSlug();
  return {
    id,
    orgId,
    name: name || chosen,
    slug: chosen,
    spec,
    requires: [...new Set(needs.map(({ feature }) => feature))],
    sealed: holdsSecrets(sealed) ? ctx.seal(Buffer.from(JSON.stringify(sealed)), id) : null,
    start,
  };
}

function holdsSecrets({ patches, secrets, registry }: SealedSpec): boolean {
  return patches.length > 0 || secrets.length > 0 || registry !== null;
}

// Read only after a refusal. Where the lease has changed its mind meanwhile, the client's next
// try is as good as ours.
async function whyNotMade(ctx: SandboxContext, needs: readonly Requirement[]) {
  const engine = await ctx.store.findEngine();
  const faults = unsupported(needs, engine?.features ?? []);
  return engine && faults.length > 0 ? invalidConfig(inSpec(faults)) : unreachable();
}

function announce(ctx: SandboxContext, made: Sandbox, started: boolean): void {
  if (!started) return;
  ctx.changes.publish({
    sandboxId: made.id,
    status: made.status,
    generation: made.generation,
    destroyed: false,
  });
  ctx.hint();
}
