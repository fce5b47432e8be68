import { withClient } from "../../../runtime/postgres/connect.ts";
import type { Instance } from "../../../services/orchestrator/engines/engine.ts";
import { PLACES_SQL, type PlacesRow } from "../../support/places.ts";
import type { LedgerEntry } from "./engine-protocol.ts";
import type { VolumeFacts } from "./volumes/facts.ts";

export interface SandboxRow {
  id: string;
  name: string;
  orgId: string;
  status: string;
  generation: number;
  destroyed: boolean;
  failure: string | null;
}

export interface RunRow {
  sandboxId: string;
  generation: number;
  phase: string;
  outcome: string | null;
  admittedAt: Date;
  runningAt: Date | null;
  closedAt: Date | null;
  /** What it is to be billed, and what was rolled up of it; null: it was not taken yet. */
  billedMs: number;
  meteredMs: number | null;
}

export interface EventRow {
  id: string;
  type: string;
  sandboxId: string;
  /** The client whose key was used; null: the system. */
  client: string | null;
  name: string;
  at: Date;
}

/** What is on record of an idempotency key. */
export interface RecordRow {
  idempotencyKey: string;
  /** Null: it was refused. */
  sandboxId: string | null;
}

/** All that is known after a run, to be compared with itself and with what the clients know. */
export interface Facts {
  sandboxes: SandboxRow[];
  runs: RunRow[];
  /** In their order. */
  events: EventRow[];
  records: RecordRow[];
  places: PlacesRow[];
  machines: Instance[];
  /** Days of organizations whose total is not the sum of their runs. */
  unevenDays: string[];
  /** Effective starts; empty where nobody could write them down. */
  starts: LedgerEntry[];
  volumes: VolumeFacts;
  /** What is wrong with machines beyond what their engine shows. */
  host: string[];
}

export type DatabaseFacts = Pick<
  Facts,
  "sandboxes" | "runs" | "events" | "records" | "places" | "unevenDays"
>;

/** Read in one snapshot. */
export function readDatabase(url: string): Promise<DatabaseFacts> {
  return withClient(url, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const rows = async <Row>(sql: string) => (await client.query(sql)).rows as Row[];
    return {
      sandboxes: await rows<SandboxRow>(
        `SELECT id, name, org_id AS "orgId", status, generation, destroyed_at IS NOT NULL AS destroyed,
                last_failure_message AS failure
         FROM sandbox.sandboxes ORDER BY id`,
      ),
      runs: await rows<RunRow>(
        `SELECT sandbox_id AS "sandboxId", generation, phase, outcome, admitted_at AS "admittedAt",
                running_at AS "runningAt", closed_at AS "closedAt",
                greatest(0, coalesce(billing.ms(least(stop_admitted_at, machine_ended_at)) - billing.ms(running_at), 0))::float8 AS "billedMs",
                CASE WHEN metered_at IS NOT NULL THEN (
                  SELECT coalesce(sum(d.end_ms - d.start_ms), 0) FROM billing.run_days d
                  WHERE d.org_id = r.org_id AND d.sandbox_id = r.sandbox_id AND d.generation = r.generation
                )::float8 END AS "meteredMs"
         FROM sandbox.runs r ORDER BY sandbox_id, generation`,
      ),
      unevenDays: (
        await rows<{ day: string }>(
          `SELECT org_id || ' ' || day AS day FROM billing.daily
           FULL JOIN (
             SELECT org_id, day, sum(vcpus::bigint * (end_ms - start_ms)) AS vcpu FROM billing.run_days GROUP BY org_id, day
           ) sums USING (org_id, day) WHERE daily.vcpu IS DISTINCT FROM sums.vcpu`,
        )
      ).map(({ day }) => day),
      events: await rows<EventRow>(
        `SELECT id, event_type AS type, payload->>'sandbox_id' AS "sandboxId", payload->>'name' AS name,
                CASE WHEN actor->>'kind' = 'api_key' THEN actor->>'name' END AS client, timestamp AS at
         FROM organization.events WHERE category = 'sandbox' ORDER BY timestamp, id`,
      ),
      records: await rows<RecordRow>(
        `SELECT key AS "idempotencyKey", resource_id AS "sandboxId" FROM organization.idempotency`,
      ),
      places: await rows<PlacesRow>(PLACES_SQL),
    };
  });
}
