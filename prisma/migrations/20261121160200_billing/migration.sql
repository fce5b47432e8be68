-- Metering: closed runs are rolled up once, by day; plans are changed together with their events.

-- sandbox ------------------------------------------------------------------------------------

-- When the run was handed out to be metered; only closed ones are, once. Runs of before are metered in the background.
ALTER TABLE sandbox.runs ADD COLUMN metered_at timestamptz(6);
CREATE INDEX runs_to_meter ON sandbox.runs (closed_at) WHERE closed_at IS NOT NULL AND metered_at IS NULL;
-- Those that are counted one by one: open, or not rolled up yet.
CREATE INDEX runs_unmetered ON sandbox.runs (org_id) WHERE running_at IS NOT NULL AND metered_at IS NULL;

-- Hands out closed runs to be metered, the oldest first, each once: what the caller makes of them has to be in the
-- same transaction. Any number of callers at once.
CREATE FUNCTION sandbox.take_closed_runs(most integer) RETURNS SETOF sandbox.runs
LANGUAGE sql VOLATILE AS $$
  WITH chosen AS MATERIALIZED (
    SELECT sandbox_id, generation FROM sandbox.runs
    WHERE closed_at IS NOT NULL AND metered_at IS NULL
    ORDER BY closed_at LIMIT most FOR UPDATE SKIP LOCKED
  )
  UPDATE sandbox.runs r SET metered_at = clock_timestamp()
  FROM chosen c WHERE r.sandbox_id = c.sandbox_id AND r.generation = c.generation
  RETURNING r.*
$$;

-- billing ------------------------------------------------------------------------------------

-- Milliseconds since 1970, the rest cut off.
CREATE FUNCTION billing.ms(at timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT floor(extract(epoch FROM at) * 1000)::bigint $$;

-- The billed part of a closed run on one UTC day, in milliseconds of that day.
CREATE TABLE billing.run_days (
  org_id     uuid NOT NULL,
  day        date NOT NULL,
  sandbox_id uuid NOT NULL,
  generation integer NOT NULL,
  start_ms   integer NOT NULL CHECK (start_ms >= 0),
  end_ms     integer NOT NULL CHECK (end_ms <= 86400000),
  vcpus      integer NOT NULL,
  memory_mib integer NOT NULL,
  disk_mib   integer NOT NULL,
  PRIMARY KEY (org_id, day, sandbox_id, generation),
  CHECK (start_ms < end_ms)
);

-- The sums of run_days: vCPUs and MiB, times milliseconds.
CREATE TABLE billing.daily (
  org_id uuid NOT NULL,
  day    date NOT NULL,
  vcpu   numeric NOT NULL,
  memory numeric NOT NULL,
  disk   numeric NOT NULL,
  PRIMARY KEY (org_id, day)
);

-- What a volume held, and from when until when; `until` null: it still does.
CREATE TABLE billing.storage_accruals (
  org_id    uuid NOT NULL,
  volume_id uuid NOT NULL,
  since     timestamptz(6) NOT NULL,
  until     timestamptz(6),
  mib       bigint NOT NULL CHECK (mib >= 0),
  PRIMARY KEY (org_id, volume_id, since),
  CHECK (since <= until)
);
CREATE UNIQUE INDEX storage_accruals_open ON billing.storage_accruals (volume_id) WHERE until IS NULL;

-- What the sample charges for disks, it charges from the first hour.
UPDATE billing.plans SET limits = limits || '{"included_disk_gib_hours": 0}'
WHERE name = 'sample-metered' AND NOT limits ? 'included_disk_gib_hours';

-- What an organization may use and what it pays, as its events tell it.
CREATE FUNCTION billing.terms(org uuid) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_build_object(
    'plan', p.name,
    'by_default', NOT EXISTS (SELECT FROM billing.subscriptions s WHERE s.org_id = org),
    'limits', billing.limits(org) - 'exhausted_pool',
    'hard_cap', p.hard_cap,
    'currency', p.currency,
    'prices', jsonb_build_object('vcpu_hour', p.vcpu_hour, 'memory_gib_hour', p.memory_gib_hour,
                                 'disk_gib_hour', p.disk_gib_hour, 'storage_gib_hour', p.storage_gib_hour))
  FROM billing.plans p WHERE p.name = billing.plan_of(org)
$$;

CREATE FUNCTION billing.terms_of(orgs uuid[]) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_object_agg(org, billing.terms(org)), '{}') FROM unnest(orgs) AS org
$$;

-- An event for each organization whose terms are not what they were.
CREATE FUNCTION billing.append_changes(before jsonb, actor jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM organization.append_event(was.org::uuid, 'quota_changed', actor,
    jsonb_build_object('plan', now.terms->'plan', 'before', was.terms, 'after', now.terms), clock_timestamp())
  FROM jsonb_each(before) AS was (org, terms),
       LATERAL (SELECT billing.terms(was.org::uuid) AS terms OFFSET 0) AS now
  WHERE now.terms IS DISTINCT FROM was.terms;
END
$$;

-- Changes of plans and of who has them come one after the other, so that each event's before is the last one's after.
-- Each statement of these functions sees what the ones before it did.

-- Makes a plan or replaces it: `given` has the columns of billing.plans. False: it is the default, and has to stay it.
CREATE FUNCTION billing.set_plan(given jsonb, actor jsonb) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  becomes_default boolean := (given->>'is_default')::boolean;
  before jsonb;
BEGIN
  LOCK TABLE billing.plans IN SHARE ROW EXCLUSIVE MODE;
  IF NOT becomes_default AND EXISTS (SELECT FROM billing.plans p WHERE p.name = given->>'name' AND p.is_default) THEN
    RETURN false;
  END IF;
  before := billing.terms_of(ARRAY(
    SELECT o.id FROM organization.organizations o LEFT JOIN billing.subscriptions s ON s.org_id = o.id
    WHERE s.plan = given->>'name' OR (becomes_default AND s.org_id IS NULL)));
  IF becomes_default THEN
    UPDATE billing.plans p SET is_default = false, updated_at = clock_timestamp()
    WHERE p.is_default AND p.name <> given->>'name';
  END IF;
  INSERT INTO billing.plans AS p
    (name, limits, currency, vcpu_hour, memory_gib_hour, disk_gib_hour, storage_gib_hour, hard_cap, is_default)
  SELECT g.name, g.limits, g.currency, g.vcpu_hour, g.memory_gib_hour, g.disk_gib_hour, g.storage_gib_hour, g.hard_cap, g.is_default
  FROM jsonb_populate_record(NULL::billing.plans, given) g
  ON CONFLICT (name) DO UPDATE
    SET limits = excluded.limits, currency = excluded.currency, vcpu_hour = excluded.vcpu_hour,
        memory_gib_hour = excluded.memory_gib_hour, disk_gib_hour = excluded.disk_gib_hour,
        storage_gib_hour = excluded.storage_gib_hour, hard_cap = excluded.hard_cap,
        is_default = excluded.is_default, updated_at = clock_timestamp();
  PERFORM billing.append_changes(before, actor);
  RETURN true;
END
$$;

-- Puts an organization on a plan; null: on none, so that it has the default one. Where either does not exist nothing changes.
CREATE FUNCTION billing.assign_plan(org uuid, to_plan text, actor jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  before jsonb;
BEGIN
  LOCK TABLE billing.plans IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM organization.organizations o WHERE o.id = org) THEN RETURN; END IF;
  before := billing.terms_of(ARRAY[org]);
  DELETE FROM billing.subscriptions s WHERE s.org_id = org AND to_plan IS NULL;
  INSERT INTO billing.subscriptions AS s (org_id, plan, since)
  SELECT org, p.name, clock_timestamp() FROM billing.plans p WHERE p.name = to_plan
  ON CONFLICT (org_id) DO UPDATE SET plan = excluded.plan, since = excluded.since WHERE s.plan <> excluded.plan;
  PERFORM billing.append_changes(before, actor);
END
$$;

-- Sets some of an organization's overrides and clears others.
CREATE FUNCTION billing.set_overrides(org uuid, given jsonb, cleared text[], actor jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  before jsonb;
BEGIN
  LOCK TABLE billing.plans IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM organization.organizations o WHERE o.id = org) THEN RETURN; END IF;
  before := billing.terms_of(ARRAY[org]);
  INSERT INTO billing.overrides AS o (org_id, limits, updated_at) VALUES (org, given, clock_timestamp())
  ON CONFLICT (org_id) DO UPDATE SET limits = (o.limits - cleared) || given, updated_at = excluded.updated_at;
  DELETE FROM billing.overrides o WHERE o.org_id = org AND o.limits = '{}';
  PERFORM billing.append_changes(before, actor);
END
$$;
