import { rm } from "node:fs/promises";
import { describeApiKey, generateApiKey, hashApiKey, isApiKey } from "../../runtime/api-key.ts";
import type { Actor } from "../../runtime/caller.ts";
import { keepSecretFile, readSecretFile } from "../../runtime/data-dir.ts";
import { StartupError } from "../../runtime/errors.ts";
import type { OrganizationContext } from "./context.ts";

export interface BootstrapOptions {
  /** The operator's own key; undefined: one is generated and kept in `keyFile`. */
  bootstrapApiKey: string | undefined;
  /** Path of the file for a generated key. */
  keyFile: string;
}

/** What the operator has to know of it. */
export interface BootstrapResult {
  /** Made just now, to be shown this once. */
  generatedKey: string | undefined;
  /** Where a key is that opens the installation: BOOTSTRAP_API_KEY, `keyFile`, or only with its owner. */
  keyIn: "environment" | "file" | "elsewhere";
}

const ACTOR: Actor = { kind: "system", code: "bootstrap", label: "First start" };

/**
 * Makes the organization `default` with its key, where the database has no organization.
 * Safe to be run by several processes at once.
 * @throws StartupError where the key file cannot be used
 */
export async function bootstrap(
  ctx: Pick<OrganizationContext, "store">,
  { bootstrapApiKey, keyFile }: BootstrapOptions,
): Promise<BootstrapResult> {
  if (bootstrapApiKey !== undefined) {
    const usable =
      (await createDefault(ctx, bootstrapApiKey)) || (await isKnown(ctx, bootstrapApiKey));
    if (usable) return { generatedKey: undefined, keyIn: "environment" };
  } else if (!(await ctx.store.hasOrganizations())) {
    const generatedKey = await generate(ctx, keyFile);
    if (generatedKey !== undefined) return { generatedKey, keyIn: "file" };
  }
  const kept = await readSecretFile(keyFile);
  const usable = kept !== undefined && (await isKnown(ctx, kept));
  return { generatedKey: undefined, keyIn: usable ? "file" : "elsewhere" };
}

// The file comes first: a crash in between must not leave an organization whose key nobody has.
async function generate(
  ctx: Pick<OrganizationContext, "store">,
  keyFile: string,
): Promise<string | undefined> {
  const key = await keepSecretFile(keyFile, generateApiKey);
  if (!isApiKey(key)) throw new StartupError(`The file ${keyFile} holds no API key: remove it`);
  if (await createDefault(ctx, key)) return key;
  // Another process, with another folder, was faster.
  if (!(await isKnown(ctx, key))) await rm(keyFile, { force: true });
  return undefined;
}

function createDefault(ctx: Pick<OrganizationContext, "store">, key: string): Promise<boolean> {
  const { prefix, lastFour } = describeApiKey(key);
  return ctx.store.createFirstOrganization({
    name: "Default",
    slug: "default",
    keyName: "Bootstrap key",
    keySha256: hashApiKey(key),
    keyPrefix: prefix,
    keyLastFour: lastFour,
    actor: ACTOR,
  });
}

async function isKnown(ctx: Pick<OrganizationContext, "store">, key: string): Promise<boolean> {
  return (await ctx.store.findKeyHolder(hashApiKey(key))) !== undefined;
}
