import { join } from "node:path";
import type { Client } from "pg";
import type { Config } from "../../runtime/config.ts";
import { readSecretFile, whyOf } from "../../runtime/data-dir.ts";
import { createSecrets } from "../../runtime/secrets.ts";
import { type Check, type Facts, fail, ok, type Subject, skip, warn } from "./check.ts";

/** What the rows of a database that is up to date tell. */
export async function askRows(client: Client, { config, facts }: Subject): Promise<Check[]> {
  facts.volumesMark = await readMark(client);
  return [
    await askSealed(client, config),
    await askOrganizations(client),
    await askKeys(client),
    await askPlans(client),
    await askLeases(client, facts),
    await askQueue(client),
  ];
}

async function readMark(client: Client): Promise<string | null> {
  const { rows } = await client.query<{ mark: string | null }>(
    "SELECT volumes_mark::text AS mark FROM orchestrator.installation",
  );
  return rows[0]?.mark ?? null;
}

/** Whether our key opens what was sealed; the newest, for an older key may have been lost for good. */
async function askSealed(client: Client, config: Config): Promise<Check> {
  const name = "secrets key";
  const { rows } = await client.query<{ id: string; sealed: Buffer }>(
    "SELECT sandbox_id::text AS id, sealed FROM sandbox.sealed_specs ORDER BY sandbox_id DESC LIMIT 1",
  );
  const key = await readKey(config).catch(whyOf);
  const where = "SECRETS_KEY, or the file secrets-key under DATA_DIR";
  const mend = `bring back the key that Sandgate sealed with (${where})`;
  if (typeof key === "string") return fail(name, `it cannot be read: ${key}`, mend);
  const [row] = rows;
  if (!row) return ok(name, "nothing is sealed");
  if (!key) return fail(name, "there is none, and sandboxes have sealed secrets", mend);
  try {
    createSecrets(key).unseal(row.sealed, row.id);
    return ok(name, "it opens what was sealed last");
  } catch {
    return fail(name, "it does not open what was sealed last", mend);
  }
}

async function readKey({ secretsKey, dataDir }: Config): Promise<Uint8Array | undefined> {
  if (secretsKey) return secretsKey;
  const text = await readSecretFile(join(dataDir, "secrets-key"));
  return text === undefined ? undefined : Buffer.from(text, "base64");
}

async function askOrganizations(client: Client): Promise<Check> {
  const name = "organizations";
  const { rows } = await client.query<{ all: number; suspended: number }>(
    `SELECT count(*)::int AS all, count(suspended_at)::int AS suspended FROM organization.organizations`,
  );
  const { all = 0, suspended = 0 } = rows[0] ?? {};
  if (all > 0) return ok(name, `there are ${all}, ${suspended} of them suspended`);
  const mend = "npm start makes the first one, or: npm run cli -- organizations create";
  return warn(name, "there is none", mend);
}

async function askKeys(client: Client): Promise<Check> {
  const name = "keys";
  const { rows } = await client.query<{ good: number; halted: string | null; ending: string[] }>(
    `SELECT count(*) FILTER (WHERE o.suspended_at IS NULL)::int AS good,
            min(o.slug) FILTER (WHERE o.suspended_at IS NOT NULL) AS halted,
            coalesce(array_agg(o.slug || ': ' || k.name || ' at ' || to_char(k.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                               ORDER BY k.expires_at)
                     FILTER (WHERE k.expires_at < now() + interval '7 days' AND k.replaced_by IS NULL
                             AND o.suspended_at IS NULL), '{}') AS ending
     FROM organization.api_keys k JOIN organization.organizations o ON o.id = k.org_id
     WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())`,
  );
  const { good = 0, halted, ending = [] } = rows[0] ?? {};
  if (good === 0 && halted)
    return warn(
      name,
      "none works: the organizations that have some are suspended",
      `npm run cli -- organizations resume ${halted}`,
    );
  if (good === 0) return warn(name, "none works", "npm run cli -- keys create <org> --name <name>");
  if (ending.length === 0) return ok(name, `${good} work`);
  const seen = `of ${good} that work ${ending.length} expire within 7 days: ${ending.slice(0, 5).join(", ")}`;
  return warn(name, seen, "npm run cli -- keys rotate <org> <key> --overlap 1h");
}

async function askPlans(client: Client): Promise<Check> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT name FROM billing.plans WHERE is_default",
  );
  const [row] = rows;
  if (row) return ok("default plan", `it is '${row.name}'`);
  return fail("default plan", "there is none", "npm run cli -- plans set unlimited --default");
}

async function askLeases(client: Client, facts: Facts): Promise<Check> {
  const { rows } = await client.query<{
    engine: string;
    alive: boolean;
    ago: number;
    features: string[];
  }>(
    `SELECT engine, expires_at > clock_timestamp() AS alive, features,
            extract(epoch FROM clock_timestamp() - last_seen_at)::float8 AS ago
     FROM orchestrator.leases ORDER BY last_seen_at DESC`,
  );
  const name = "orchestrator";
  const [last] = rows;
  facts.engines = rows.map(({ engine }) => engine);
  if (!last) return skip(name, "none has ever led here: npm start runs one");
  const seen = `last seen ${Math.max(0, last.ago).toFixed(1)} s ago`;
  if (last.alive) {
    facts.leader = { engine: last.engine, features: last.features };
    const features = last.features.join(", ") || "nothing beyond the basics";
    return ok(name, `one leads the engine '${last.engine}', ${seen}; it honours ${features}`);
  }
  const mend = "npm start, or the role orchestrator; nothing can be started until then";
  return fail(name, `none leads; that of the engine '${last.engine}' was ${seen}`, mend);
}

async function askQueue(client: Client): Promise<Check> {
  const name = "queue";
  const { rows } = await client.query<{ queued: number; waiting: number; secs: number | null }>(
    `SELECT count(*)::int AS queued, count(waiting_since)::int AS waiting,
            extract(epoch FROM clock_timestamp() - min(waiting_since))::float8 AS secs
     FROM sandbox.runs WHERE phase = 'starting' AND desired = 'running' AND placed_at IS NULL`,
  );
  const { queued = 0, waiting = 0, secs } = rows[0] ?? {};
  if (waiting === 0) return ok(name, `${queued} starts are queued, none waits for room`);
  const seen = `${waiting} starts wait for room, the longest for ${Math.round(secs ?? 0)} s`;
  return warn(name, seen, "stop what is not needed, or raise CPU_OVERCOMMIT or MEMORY_OVERCOMMIT");
}
