import { withClient } from "../../../../runtime/postgres/connect.ts";
import type { Disk } from "./disk.ts";

export interface VolumeRow {
  id: string;
  orgId: string;
  /** Null: the host volume. */
  name: string | null;
  /** Null: it was never measured. */
  usedBytes: number | null;
  deleted: boolean;
}

export interface VolumeEventRow {
  type: string;
  volumeId: string;
  /** The client whose key was used; null: the system. */
  client: string | null;
}

export interface AccrualRow {
  volumeId: string;
  /** Since 1970. */
  day: number;
  startMs: number;
  endMs: number;
  byteMs: string;
}

/** What became of a volume's last measurement, in the order in which it did. */
export interface SampleRow {
  volumeId: string;
  /** Milliseconds since 1970. */
  at: number;
  bytes: string;
  /** It was taken away. */
  ended: boolean;
}

/** All that is known of volumes after a run. */
export interface VolumeFacts {
  rows: VolumeRow[];
  events: VolumeEventRow[];
  /** Open runs of sandboxes that mount a volume that is gone. */
  homeless: string[];
  accruals: AccrualRow[];
  samples: SampleRow[];
  disk: Disk;
}

/** Of a system that knows none. */
export const NO_VOLUMES: VolumeFacts = {
  rows: [],
  events: [],
  homeless: [],
  accruals: [],
  samples: [],
  disk: { volumes: [], strays: [] },
};

type Rows = <Row>(sql: string) => Promise<Row[]>;

/** Read in one snapshot. */
export function readVolumes(url: string): Promise<Omit<VolumeFacts, "disk">> {
  return withClient(url, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return readRows(async <Row>(sql: string) => (await client.query(sql)).rows as Row[]);
  });
}

async function readRows(rows: Rows): Promise<Omit<VolumeFacts, "disk">> {
  return {
    rows: await rows<VolumeRow>(
      `SELECT id, org_id AS "orgId", name, used_bytes::float8 AS "usedBytes", deleted_at IS NOT NULL AS deleted
       FROM sandbox.volumes ORDER BY id`,
    ),
    events: await rows<VolumeEventRow>(
      `SELECT event_type AS type, payload->>'volume_id' AS "volumeId",
              CASE WHEN actor->>'kind' = 'api_key' THEN actor->>'name' END AS client
       FROM organization.events WHERE category = 'volume' ORDER BY timestamp, id`,
    ),
    homeless: (
      await rows<{ run: string }>(
        `SELECT format('%s (%s) runs without volume %s', r.sandbox_id, r.generation, m.volume_id) AS run
         FROM sandbox.runs r JOIN sandbox.mounted_volumes m USING (sandbox_id)
         WHERE r.closed_at IS NULL AND NOT EXISTS (
           SELECT FROM sandbox.volumes v WHERE v.id = m.volume_id AND v.deleted_at IS NULL)`,
      )
    ).map(({ run }) => run),
    accruals: await rows<AccrualRow>(
      `SELECT volume_id AS "volumeId", day - date '1970-01-01' AS day, start_ms AS "startMs", end_ms AS "endMs",
              byte_ms::text AS "byteMs"
       FROM billing.storage_accruals ORDER BY volume_id, day`,
    ),
    samples: await rows<SampleRow>(
      `SELECT volume_id AS "volumeId", billing.ms(at)::float8 AS at, bytes::text, ended FROM chaos.samples ORDER BY seq`,
    ),
  };
}

/** Writes down every measurement that billing knows of, to be counted again afterwards. */
export const WATCH_SAMPLES = `
CREATE SCHEMA chaos;
CREATE TABLE chaos.samples (
  seq bigint GENERATED ALWAYS AS IDENTITY, volume_id uuid, at timestamptz, bytes bigint, ended boolean);
CREATE FUNCTION chaos.watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO chaos.samples (volume_id, at, bytes, ended) VALUES (old.volume_id, old.at, old.bytes, true);
  ELSE
    INSERT INTO chaos.samples (volume_id, at, bytes, ended) VALUES (new.volume_id, new.at, new.bytes, false);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON billing.storage_samples
  FOR EACH ROW EXECUTE FUNCTION chaos.watch();`;
