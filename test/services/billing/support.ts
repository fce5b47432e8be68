import { randomUUID } from "node:crypto";
import { type Client, createClient, createContextValues } from "@connectrpc/connect";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { BillingService } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import type { FieldFault } from "../../../runtime/errors.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import type { BillingContext } from "../../../services/billing/context.ts";
import { rollUp } from "../../../services/billing/domain/roll-up.ts";
import { createBillingService } from "../../../services/billing/service.ts";
import { createStore } from "../../../services/billing/store.ts";
import { createTestDatabase } from "../../support/database.ts";

/** The billing service on a database of its own, with a clock that the test sets. */
export interface BillingBench {
  ctx: BillingContext;
  database: Database;
  url: string;
  client: Client<typeof BillingService>;
  /** RFC 3339; undefined: the database's own clock. */
  setNow(at: string | undefined): void;
  /** A new organization. */
  organization(): Promise<Caller>;
  /** Its events of type quota_changed, the oldest first. */
  changes(orgId: string): Promise<{ actor: unknown; payload: Record<string, unknown> }[]>;
  /** Rolls up all that is closed. */
  meter(): Promise<void>;
  close(): Promise<void>;
}

export async function createBillingBench(): Promise<BillingBench> {
  const { url, close } = await createTestDatabase();
  const database = openDatabase(url, { poolSize: 8 });
  const store = createStore(database);
  let now: number | undefined;
  const ctx = { store: { ...store, now: async () => now ?? (await store.now()) } };
  return {
    ctx,
    database,
    url,
    client: createClient(
      BillingService,
      createInProcessTransport(
        (router) => router.service(BillingService, createBillingService(ctx)),
        { log: console, freeze: true },
      ),
    ),
    setNow: (at) => {
      now = at === undefined ? undefined : Date.parse(at);
    },
    organization: () => newOrganization(database),
    changes: (orgId) =>
      database.query(
        `SELECT actor, payload FROM organization.events
         WHERE org_id = $1::uuid AND event_type = 'quota_changed' ORDER BY timestamp, id`,
        orgId,
      ),
    meter: async () => {
      while ((await rollUp(ctx)) === 0);
    },
    close: async () => {
      await database.close();
      await close();
    },
  };
}

export async function newOrganization(database: Database): Promise<Caller> {
  const orgId = randomUUID();
  await database.query(
    "INSERT INTO organization.organizations (id, name, slug) VALUES ($1::uuid, 'Test', $1) RETURNING id",
    orgId,
  );
  const actor = { kind: "api_key", api_key_id: randomUUID(), name: "test" } as const;
  return { orgId, actor, requestId: "test" };
}

/** The options of a call on behalf of a caller. */
export function as(caller: Caller) {
  return { contextValues: createContextValues().set(callerKey, caller) };
}

/** A run as rows have it; instants are RFC 3339. */
export interface TestRun {
  orgId: string;
  sandboxId?: string;
  generation?: number;
  vcpus?: number;
  memoryMib?: number;
  diskSizeMib?: number | null;
  admittedAt?: string;
  runningAt?: string | null;
  stopAdmittedAt?: string | null;
  machineEndedAt?: string | null;
  /** Default: where the machine ended, if it did. */
  closedAt?: string | null;
}

/** Writes runs as the sandbox service would have left them. */
export async function insertRuns(database: Database, runs: readonly TestRun[]): Promise<void> {
  const rows = runs.map((run) => {
    const closedAt = run.closedAt === undefined ? (run.machineEndedAt ?? null) : run.closedAt;
    const phase = closedAt ? "ended" : run.runningAt ? "running" : "starting";
    return {
      sandbox_id: run.sandboxId ?? randomUUID(),
      generation: run.generation ?? 1,
      org_id: run.orgId,
      vcpus: run.vcpus ?? 1,
      memory_mib: run.memoryMib ?? 512,
      disk_size_mib: run.diskSizeMib ?? null,
      ephemeral: false,
      desired: run.stopAdmittedAt ? "stopped" : "running",
      phase,
      outcome: closedAt ? "stopped" : null,
      admitted_at: run.admittedAt ?? run.runningAt ?? run.machineEndedAt,
      running_at: run.runningAt ?? null,
      stop_admitted_at: run.stopAdmittedAt ?? null,
      machine_ended_at: run.machineEndedAt ?? null,
      closed_at: closedAt,
    };
  });
  await database.query(
    `INSERT INTO sandbox.runs SELECT * FROM jsonb_populate_recordset(NULL::sandbox.runs, $1::jsonb) RETURNING sandbox_id`,
    JSON.stringify(rows),
  );
}

/** A sandbox that exists, or is destroyed and not yet removed. */
export async function insertSandbox(
  database: Database,
  {
    id,
    orgId,
    name,
    destroyed = false,
  }: Record<"id" | "orgId" | "name", string> & { destroyed?: boolean },
): Promise<void> {
  await database.query(
    `INSERT INTO sandbox.sandboxes (id, org_id, name, slug, status, spec, requires, ephemeral, created_at, destroyed_at)
     VALUES ($1::uuid, $2::uuid, $3, $3, 'stopped', '{}', '{}', false, now(), CASE WHEN $4::boolean THEN now() END) RETURNING id`,
    id,
    orgId,
    name,
    destroyed,
  );
}

/** Why a call was refused, and which fields were wrong. */
export function refusalOf(call: Promise<unknown>): Promise<{ reason: string; fields: string[] }> {
  return call.then(
    () => ({ reason: "none", fields: [] }),
    (error: unknown) => {
      const refused = fromConnectError(error);
      if (!refused) throw error;
      return {
        reason: refused.reason,
        fields: refused.faults.map(({ field }: FieldFault) => field),
      };
    },
  );
}

/** What a volume was measured to hold, as the statement that writes a measurement down tells it. */
export interface TestSample {
  orgId: string;
  volumeId: string;
  /** RFC 3339. */
  at: string;
  bytes: bigint;
}

export async function measured(
  database: Database,
  { orgId, volumeId, at, bytes }: TestSample,
): Promise<void> {
  await database.query(
    "SELECT billing.accrue_storage($1::uuid, $2::uuid, $3::text::bigint, $4::text::timestamptz)::text AS done",
    orgId,
    volumeId,
    String(bytes),
    at,
  );
}

/** What the statement that deletes a volume tells. */
export async function ended(database: Database, volumeId: string, at: string): Promise<void> {
  await database.query(
    "SELECT billing.end_storage($1::uuid, $2::text::timestamptz)::text AS done",
    volumeId,
    at,
  );
}

/** A volume; without a name the organization's host volume. */
export async function insertVolume(
  database: Database,
  {
    orgId,
    name,
    deleted = false,
  }: { orgId: string; name: string | null; deleted?: boolean | undefined },
): Promise<string> {
  const id = randomUUID();
  await database.query(
    `INSERT INTO sandbox.volumes (id, org_id, kind, name, created_at, updated_at, deleted_at)
     VALUES ($1::uuid, $2::uuid, CASE WHEN $3::text IS NULL THEN 'host' ELSE 'managed' END, $3, now(), now(),
             CASE WHEN $4::boolean THEN now() END) RETURNING id`,
    id,
    orgId,
    name,
    deleted,
  );
  return id;
}
