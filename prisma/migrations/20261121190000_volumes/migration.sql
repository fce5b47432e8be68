-- Volumes: what there is, who mounts it, what is being written, and what they held.

-- sandbox ------------------------------------------------------------------------------------

CREATE TABLE sandbox.volumes (
  id               uuid PRIMARY KEY,
  org_id           uuid NOT NULL,
  kind             text NOT NULL CHECK (kind IN ('host', 'managed')),
  name             text,
  capacity_gib     integer CHECK (capacity_gib >= 1),
  labels           jsonb NOT NULL DEFAULT '{}',
  -- As last measured; null: never.
  used_bytes       bigint CHECK (used_bytes >= 0),
  -- When that measurement began.
  measured_at      timestamptz(6),
  -- Since when it holds more than its capacity; null: it does not.
  over_capacity_at timestamptz(6),
  -- When it got a capacity where it had none: of writes before that nothing was promised, so only a later measurement counts.
  capped_at        timestamptz(6),
  created_at       timestamptz(6) NOT NULL,
  updated_at       timestamptz(6) NOT NULL,
  -- Set by delete; the row stays until the engine confirms that nothing is left.
  deleted_at       timestamptz(6),
  CHECK ((kind = 'host') = (name IS NULL)),
  CHECK (kind = 'managed' OR (capacity_gib IS NULL AND deleted_at IS NULL))
);
CREATE UNIQUE INDEX volumes_name_key ON sandbox.volumes (org_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX volumes_host_key ON sandbox.volumes (org_id) WHERE kind = 'host';
CREATE INDEX volumes_list ON sandbox.volumes (org_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX volumes_deleted ON sandbox.volumes (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX volumes_to_measure ON sandbox.volumes (measured_at NULLS FIRST) WHERE deleted_at IS NULL;

-- The volumes that a sandbox's mounts and copy patches name, as they were when it was made; '' is the host volume.
CREATE TABLE sandbox.mounted_volumes (
  sandbox_id uuid NOT NULL REFERENCES sandbox.sandboxes (id) ON DELETE CASCADE,
  name       text NOT NULL,
  volume_id  uuid NOT NULL,
  PRIMARY KEY (sandbox_id, name)
);
CREATE INDEX mounted_volumes_by_volume ON sandbox.mounted_volumes (volume_id);

-- What all volumes of an organization hold together, against its storage limit. Locked before anything is promised of it.
CREATE TABLE sandbox.storage (
  org_id        uuid PRIMARY KEY,
  -- Since when that is more than the limit; null: it is not.
  over_limit_at timestamptz(6)
);
CREATE INDEX storage_over_limit ON sandbox.storage (org_id) WHERE over_limit_at IS NOT NULL;

-- Bytes promised to writes of files, and not in a measurement yet.
CREATE TABLE sandbox.volume_writes (
  id         uuid PRIMARY KEY,
  org_id     uuid NOT NULL,
  volume_id  uuid NOT NULL,
  bytes      bigint NOT NULL CHECK (bytes >= 0),
  -- When it was done; a measurement that began later has seen it. Null: it goes on.
  settled_at timestamptz(6),
  -- One that was not heard of until then is given up.
  expires_at timestamptz(6) NOT NULL
);
CREATE INDEX volume_writes_by_org ON sandbox.volume_writes (org_id, volume_id);
CREATE INDEX volume_writes_by_expiry ON sandbox.volume_writes (expires_at);

-- Called by whatever makes an organization, in the same statement. No event of its own: it is part of the organization.
CREATE FUNCTION sandbox.add_host_volume(org uuid, at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
  WITH storage AS (
    INSERT INTO sandbox.storage (org_id) VALUES (org) ON CONFLICT DO NOTHING
  )
  INSERT INTO sandbox.volumes (id, org_id, kind, created_at, updated_at)
  VALUES (organization.uuid7(at), org, 'host', at, at)
  ON CONFLICT DO NOTHING RETURNING id
$$;
SELECT sandbox.add_host_volume(id, clock_timestamp()) FROM organization.organizations;

-- orchestrator -------------------------------------------------------------------------------

-- Marks the folder that volumes were first made in, so that another one is not taken for it; null: none was made yet.
ALTER TABLE orchestrator.installation ADD COLUMN volumes_mark uuid;

-- billing ------------------------------------------------------------------------------------

-- Of before there were volumes: nobody wrote it.
DROP TABLE billing.storage_accruals;

-- What a volume held on a UTC day: bytes times milliseconds, from `start_ms` to `end_ms` of that day.
CREATE TABLE billing.storage_accruals (
  org_id    uuid NOT NULL,
  day       date NOT NULL,
  volume_id uuid NOT NULL,
  start_ms  integer NOT NULL CHECK (start_ms >= 0),
  end_ms    integer NOT NULL CHECK (end_ms <= 86400000),
  byte_ms   numeric NOT NULL CHECK (byte_ms >= 0),
  PRIMARY KEY (org_id, day, volume_id),
  CHECK (start_ms < end_ms)
);

-- The latest measurement of each volume that there is; from then on it is taken to hold the same.
CREATE TABLE billing.storage_samples (
  volume_id uuid PRIMARY KEY,
  org_id    uuid NOT NULL,
  at        timestamptz(6) NOT NULL,
  bytes     bigint NOT NULL CHECK (bytes >= 0)
);
CREATE INDEX ON billing.storage_samples (org_id);

-- Writes down a measurement: between it and the one before, whenever that was, the volume is taken to have grown or
-- shrunk evenly. One of the same moment takes its place; one that is earlier changes nothing.
CREATE FUNCTION billing.accrue_storage(org uuid, volume uuid, held bigint, taken_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  last billing.storage_samples;
  t0 bigint;
  t1 bigint := billing.ms(taken_at);
BEGIN
  INSERT INTO billing.storage_samples (volume_id, org_id, at, bytes) VALUES (volume, org, taken_at, held)
  ON CONFLICT (volume_id) DO NOTHING;
  IF FOUND THEN RETURN; END IF;
  SELECT * INTO last FROM billing.storage_samples s WHERE s.volume_id = volume FOR UPDATE;
  IF NOT FOUND OR taken_at < last.at THEN RETURN; END IF;
  t0 := billing.ms(last.at);
  -- What was accrued up to a moment, cut off, less what was up to another: parts that add up to the whole.
  INSERT INTO billing.storage_accruals AS a (org_id, day, volume_id, start_ms, end_ms, byte_ms)
  SELECT org, date '1970-01-01' + d.day::int, volume, (p.since - d.day * 86400000)::int, (p.until - d.day * 86400000)::int,
         billing.storage_ramp(last.bytes, held, t1 - t0, p.until - t0) - billing.storage_ramp(last.bytes, held, t1 - t0, p.since - t0)
  FROM generate_series(t0 / 86400000, (t1 - 1) / 86400000) AS d (day),
       LATERAL (SELECT greatest(t0, d.day * 86400000) AS since, least(t1, (d.day + 1) * 86400000) AS until) p
  WHERE t0 < t1
  ON CONFLICT (org_id, day, volume_id) DO UPDATE
    SET start_ms = least(a.start_ms, excluded.start_ms), end_ms = greatest(a.end_ms, excluded.end_ms),
        byte_ms = a.byte_ms + excluded.byte_ms;
  UPDATE billing.storage_samples s SET at = taken_at, bytes = held WHERE s.volume_id = volume;
END
$$;

-- Bytes times milliseconds of the first `ms` of a stretch of `length` on which `from_bytes` become `to_bytes`.
CREATE FUNCTION billing.storage_ramp(from_bytes bigint, to_bytes bigint, length bigint, ms bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT from_bytes::numeric * ms + div((to_bytes::numeric - from_bytes) * ms * ms, 2 * length::numeric)
$$;

-- The volume is no more: it held until now what it held last, and its accruals stay.
CREATE FUNCTION billing.end_storage(volume uuid, ended_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  last billing.storage_samples;
BEGIN
  SELECT * INTO last FROM billing.storage_samples s WHERE s.volume_id = volume FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM billing.accrue_storage(last.org_id, volume, last.bytes, ended_at);
  DELETE FROM billing.storage_samples s WHERE s.volume_id = volume;
END
$$;
