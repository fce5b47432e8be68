-- What it costs: plans and limits, metering by day. Plans are changed together with their events.
CREATE SCHEMA IF NOT EXISTS billing;

-- `limits` and overrides are objects of limit names (as GET /v1/quotas has them) to integers; null, or none: unlimited.
CREATE FUNCTION billing.are_limits(given jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_typeof(given) = 'object' AND coalesce(bool_and(
    entry.key IN ('max_sandboxes', 'max_concurrent_ephemeral_running', 'max_concurrent_persistent_running',
      'max_vcpus_per_sandbox', 'max_memory_mib_per_sandbox', 'max_disk_size_mib_per_sandbox',
      'max_uptime_minutes_per_sandbox', 'max_total_storage_gib', 'included_storage_gib', 'included_disk_gib_hours',
      'included_vcpu_hours', 'included_memory_gib_hours')
    AND (entry.value = 'null' OR entry.value::text ~ '^(0|[1-9][0-9]{0,9})$' AND entry.value::text::bigint <= 2147483647)
  ), true)
  FROM jsonb_each(CASE WHEN jsonb_typeof(given) = 'object' THEN given ELSE '{}' END) AS entry
$$;

CREATE TABLE billing.plans (
  name             text PRIMARY KEY,
  limits           jsonb NOT NULL CHECK (billing.are_limits(limits)),
  currency         text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
  -- Prices are in millionths of a cent.
  vcpu_hour        bigint NOT NULL CHECK (vcpu_hour >= 0),
  memory_gib_hour  bigint NOT NULL CHECK (memory_gib_hour >= 0),
  disk_gib_hour    bigint NOT NULL CHECK (disk_gib_hour >= 0),
  storage_gib_hour bigint NOT NULL CHECK (storage_gib_hour >= 0),
  hard_cap         boolean NOT NULL,
  is_default       boolean NOT NULL,
  created_at       timestamptz(6) NOT NULL DEFAULT now(),
  updated_at       timestamptz(6) NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX plans_one_default ON billing.plans (is_default) WHERE is_default;

INSERT INTO billing.plans (name, limits, currency, vcpu_hour, memory_gib_hour, disk_gib_hour, storage_gib_hour, hard_cap, is_default)
VALUES
  ('unlimited', '{}', 'USD', 0, 0, 0, 0, false, true),
  -- Samples, for nobody until somebody is put on one: a free tier that ends, and one that is paid by use.
  ('sample-free', '{"max_sandboxes": 20, "max_concurrent_ephemeral_running": 5, "max_concurrent_persistent_running": 2,
     "max_vcpus_per_sandbox": 2, "max_memory_mib_per_sandbox": 4096, "max_disk_size_mib_per_sandbox": 10240,
     "max_uptime_minutes_per_sandbox": 60, "max_total_storage_gib": 5, "included_storage_gib": 5,
     "included_vcpu_hours": 50, "included_memory_gib_hours": 100}', 'USD', 0, 0, 0, 0, true, false),
  ('sample-metered', '{"max_sandboxes": 1000, "max_concurrent_ephemeral_running": 100, "max_concurrent_persistent_running": 100,
     "max_vcpus_per_sandbox": 8, "max_memory_mib_per_sandbox": 16384, "included_storage_gib": 10,
     "included_vcpu_hours": 100, "included_memory_gib_hours": 200, "included_disk_gib_hours": 0}',
   'USD', 5000000, 1600000, 11000, 27000, false, false);

CREATE TABLE billing.subscriptions (
  org_id uuid PRIMARY KEY,
  plan   text NOT NULL REFERENCES billing.plans (name),
  since  timestamptz(6) NOT NULL
);
CREATE INDEX ON billing.subscriptions (plan);

CREATE TABLE billing.overrides (
  org_id     uuid PRIMARY KEY,
  limits     jsonb NOT NULL CHECK (billing.are_limits(limits)),
  updated_at timestamptz(6) NOT NULL
);

-- Organizations on a hard-capped plan that have used up a pool of the month.
CREATE TABLE billing.exhaustions (
  org_id uuid PRIMARY KEY,
  -- UTC.
  month  date NOT NULL,
  -- `included_vcpu_hours` or `included_memory_gib_hours`.
  pool   text NOT NULL,
  at     timestamptz(6) NOT NULL
);

CREATE FUNCTION billing.plan_of(org uuid) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce((SELECT plan FROM billing.subscriptions WHERE org_id = org),
                  (SELECT name FROM billing.plans WHERE is_default))
$$;

-- The limits of an organization, by name: its overrides, then its plan. `exhausted_pool` names the pool that keeps it
-- from starting anything for the rest of the month.
CREATE FUNCTION billing.limits(org uuid) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p.limits
    || coalesce((SELECT o.limits FROM billing.overrides o WHERE o.org_id = org), '{}')
    || jsonb_build_object('exhausted_pool', (
         SELECT x.pool FROM billing.exhaustions x
         WHERE p.hard_cap AND x.org_id = org AND x.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date))
  FROM billing.plans p WHERE p.name = billing.plan_of(org)
$$;

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
