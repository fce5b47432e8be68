import { createHmac, randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import pg from "pg";
import { expect } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { SandboxSpecSchema } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { createChanges } from "../../../services/sandbox/changes.ts";
import type { SandboxContext } from "../../../services/sandbox/context.ts";
import type { CreateSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import { sealedFromMessage, specFromMessage } from "../../../services/sandbox/messages/spec.ts";
import { createStore, type Store } from "../../../services/sandbox/store.ts";
import { createTestDatabase } from "../../support/database.ts";

/** The verbs' context on a database of its own, with an engine's lease that the test sets. */
export interface Bench {
  ctx: SandboxContext;
  database: Database;
  url: string;
  /** How often orchestrators were hinted. */
  hints: () => number;
  close(): Promise<void>;
}

export async function createBench(): Promise<Bench> {
  const { url, close } = await createTestDatabase();
  const database = openDatabase(url, { poolSize: 8 });
  let hints = 0;
  const ctx: SandboxContext = {
    store: createStore(database),
    changes: createChanges(),
    hint: () => {
      hints += 1;
    },
    seal: (plaintext, context) =>
      Buffer.concat([Buffer.from(context), plaintext.map((b) => b ^ 0x5a)]),
    sign: (data) => createHmac("sha256", "test").update(data).digest(),
    hashRequest: (sha256) => createHmac("sha256", "test").update(sha256).digest(),
    lingerSecs: 30,
  };
  return {
    ctx,
    database,
    url,
    hints: () => hints,
    close: async () => {
      await database.close();
      await close();
    },
  };
}

/** Sets the one engine's lease: alive or dead, with these features. */
export async function setEngine(
  database: Database,
  { alive = true, features = FEATURES as readonly string[] } = {},
): Promise<void> {
  await database.query(
    `INSERT INTO orchestrator.leases AS l (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     VALUES ('test', $1::uuid, 1, now() + $2::int * interval '1 hour', now(), $3::text[], 4, 4096)
     ON CONFLICT (engine) DO UPDATE SET expires_at = excluded.expires_at, features = excluded.features
     RETURNING engine`,
    randomUUID(),
    alive ? 1 : -1,
    features,
  );
}

export function newCaller(): Caller {
  return {
    orgId: randomUUID(),
    actor: { kind: "api_key", api_key_id: randomUUID(), name: "test" },
    requestId: "test",
  };
}

/** A caller of an organization that has its host volume. */
export async function newTenant(database: Database): Promise<Caller> {
  const caller = newCaller();
  await database.query("SELECT sandbox.add_host_volume($1::uuid, clock_timestamp())", caller.orgId);
  return caller;
}

/** The audit events of an organization, the oldest first. */
export function eventsOf(database: Database, { orgId }: Pick<Caller, "orgId">) {
  return database.query<{ type: string; actor: unknown; payload: Record<string, unknown> }>(
    `SELECT event_type AS type, actor, payload FROM organization.events
     WHERE org_id = $1::uuid ORDER BY timestamp, id`,
    orgId,
  );
}

/** Runs `first` in a transaction that commits only once `second` waits for one of its locks. */
export async function overlap<T>(
  { database, url }: Pick<Bench, "database" | "url">,
  first: (store: Store) => Promise<unknown>,
  second: () => Promise<T>,
): Promise<T> {
  const held = await hold({ database, url }, first);
  try {
    const late = second();
    late.catch(() => undefined);
    await expect.poll(() => waiting(database)).toBe(1);
    return await held.commit().then(() => late);
  } finally {
    await held.end();
  }
}

/** Runs `first` in a transaction that commits when it is told to. */
export async function hold(
  { database, url }: Pick<Bench, "database" | "url">,
  first: (store: Store) => Promise<unknown>,
): Promise<{ commit(): Promise<void>; end(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const query: Database["query"] = async (sql, ...values) => (await client.query(sql, values)).rows;
  await client.query("BEGIN");
  await first(createStore({ ...database, query }));
  return {
    commit: async () => {
      await client.query("COMMIT");
    },
    end: () => client.end(),
  };
}

/** How many statements wait for a lock. */
async function waiting(database: Database): Promise<number> {
  const [row] = await database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  );
  return row?.n ?? -1;
}

/** A create as the service reads it from a message. */
export function createInput(
  spec: MessageInitShape<typeof SandboxSpecSchema> = {},
  rest: Partial<CreateSandbox> = {},
): CreateSandbox {
  const message = create(SandboxSpecSchema, { image: "alpine", ...spec });
  return {
    name: "",
    slug: null,
    spec: specFromMessage(message),
    sealed: sealedFromMessage(message),
    start: false,
    ...rest,
  };
}

/** Sets the overrides of an organization: limits by name, null is unlimited; those that are left out are its plan's. */
export async function setLimits(
  database: Database,
  orgId: string,
  limits: Record<string, number | null>,
): Promise<void> {
  await database.query(
    `INSERT INTO billing.overrides AS o (org_id, limits, updated_at) VALUES ($1::uuid, $2::jsonb, now())
     ON CONFLICT (org_id) DO UPDATE SET limits = excluded.limits RETURNING org_id`,
    orgId,
    JSON.stringify(limits),
  );
}

/** Puts an organization on a plan. */
export async function setPlan(database: Database, orgId: string, plan: string): Promise<void> {
  await database.query(
    `INSERT INTO billing.subscriptions AS s (org_id, plan, since) VALUES ($1::uuid, $2, now())
     ON CONFLICT (org_id) DO UPDATE SET plan = excluded.plan RETURNING org_id`,
    orgId,
    plan,
  );
}
