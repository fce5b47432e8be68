import { v7 as uuidv7 } from "uuid";
import type { Caller } from "../../../runtime/caller.ts";
import { invalidRequest } from "../../../runtime/errors.ts";
import type { SandboxContext } from "../context.ts";
import { type NewSandbox, takenField } from "../store.ts";
import { canonicalSpec } from "./canonical-spec.ts";
import { type Answered, type Memory, once } from "./idempotency.ts";
import { HOST_VOLUME, volumeNames } from "./mounted-volumes.ts";
import { overQuota } from "./quotas.ts";
import { unknownCredentials, unknownVolumes } from "./references.ts";
import { inSpec, invalidConfig, nameTaken, orgNotFound, unreachable } from "./refusals.ts";
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

// Of a hundred million slugs a few tries find a free one, and what stood in the way may be gone by then.
const MOST_TRIES = 8;

/** Makes a sandbox and, where asked, admits its first start in the same statement. */
export async function createSandbox(
  ctx: SandboxContext,
  caller: Caller,
  input: CreateSandbox,
): Promise<Answered> {
  const { spec, sealed } = input;
  const volumes = volumeNames(spec.mounts, sealed.patches);
  const faults = [...unknownCredentials(spec), ...sizeFaults(spec)];
  if (faults.length > 0) {
    const there = await ctx.store.listVolumeNames(caller.orgId, volumes);
    throw invalidRequest(inSpec([...unknownVolumes(spec, there), ...faults]));
  }
  const needs = [...requirements(spec), ...patchRequirements(sealed.patches)];
  return once(ctx, caller, { kind: "sandbox", verb: "create" }, async (memory) => {
    const made = await make(ctx, caller, input, { volumes, needs }, memory);
    announce(ctx, made, input.start);
    return made;
  });
}

/** What a spec asks of an engine, and the volumes that it takes something from. */
interface Wants {
  needs: readonly Requirement[];
  /** By name. */
  volumes: string[];
}

async function make(
  ctx: SandboxContext,
  { orgId, actor }: Caller,
  input: CreateSandbox,
  wants: Wants,
  memory?: Memory,
): Promise<Sandbox> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const wanted = newSandbox(ctx, orgId, input, wants);
    try {
      const made = await ctx.store.create(wanted, actor, memory);
      if (made) return made;
    } catch (error) {
      const field = takenField(error);
      if (!field) throw error;
      const generated = input.slug === null && (field === "slug" || input.name === "");
      if (generated && tries < MOST_TRIES) continue;
      throw await nameTaken(ctx, orgId, field, wanted.name);
    }
    const refused = await whyNotMade(ctx, orgId, input, wants);
    if (refused) throw refused;
  }
  throw unreachable();
}

function newSandbox(
  ctx: SandboxContext,
  orgId: string,
  { name, slug, spec, sealed, start }: CreateSandbox,
  { needs, volumes }: Wants,
): NewSandbox {
  const id = uuidv7();
  const chosen = slug ?? generateSlug();
  return {
    id,
    orgId,
    name: name || chosen,
    slug: chosen,
    spec: canonicalSpec(spec),
    requires: [...new Set(needs.map(({ feature }) => feature))],
    sealed: holdsSecrets(sealed) ? ctx.seal(Buffer.from(JSON.stringify(sealed)), id) : null,
    start,
    volumes,
  };
}

function holdsSecrets({ patches, secrets, registry }: SealedSpec): boolean {
  return patches.length > 0 || secrets.length > 0 || registry !== null;
}

// Read only after a refusal; undefined where nothing stands in the way any more.
async function whyNotMade(
  ctx: SandboxContext,
  orgId: string,
  { spec, start }: CreateSandbox,
  { needs, volumes }: Wants,
) {
  const there = await ctx.store.listVolumeNames(orgId, volumes);
  const unknown = unknownVolumes(spec, there);
  if (unknown.length > 0) return invalidRequest(inSpec(unknown));
  const engine = await ctx.store.findEngine();
  const faults = engine ? unsupported(needs, engine.features) : [];
  if (faults.length > 0) return invalidConfig(inSpec(faults));
  if (start && !engine?.alive) return unreachable();
  // Every organization has its host volume.
  if (volumes.includes(HOST_VOLUME) && !there.includes(HOST_VOLUME)) return orgNotFound();
  return overQuota(await ctx.store.findStanding(orgId), { spec, create: true, start });
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
