-- Who asks and what it costs: members, keys' lives, idempotency records, plans and limits, places.
CREATE SCHEMA IF NOT EXISTS billing;

-- organization -------------------------------------------------------------------------------

ALTER TABLE organization.api_keys
  ADD COLUMN last_used_at timestamptz(6),
  -- The key that a rotation made in its place.
  ADD COLUMN replaced_by uuid REFERENCES organization.api_keys (id);

-- A person, the same in every organization.
CREATE TABLE organization.users (
  id           uuid PRIMARY KEY,
  email        text NOT NULL,
  display_name text,
  avatar_url   text,
  created_at   timestamptz(6) NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX users_email_key ON organization.users (lower(email));

CREATE TABLE organization.members (
  id        uuid PRIMARY KEY,
  org_id    uuid NOT NULL REFERENCES organization.organizations (id),
  user_id   uuid NOT NULL REFERENCES organization.users (id),
  role      text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  joined_at timestamptz(6) NOT NULL,
  CONSTRAINT members_user_key UNIQUE (org_id, user_id)
);
CREATE INDEX members_page ON organization.members (org_id, joined_at DESC, id DESC);

-- Pages with a filter, and retention.
CREATE INDEX events_by_type ON organization.events (org_id, event_type, timestamp DESC, id DESC);
CREATE INDEX events_by_age ON organization.events (timestamp);

-- What a request with an Idempotency-Key did, or why it was refused.
CREATE TABLE organization.idempotency (
  org_id       uuid NOT NULL,
  key          text NOT NULL,
  -- HMAC-SHA-256 of what the request was.
  request_hash bytea NOT NULL,
  verb         text NOT NULL,
  resource_id  uuid,
  -- What the verb returned, or its refusal; the service that wrote it reads it.
  outcome      jsonb NOT NULL,
  -- What the client was told where that came later than the effect; opaque.
  answer       bytea,
  created_at   timestamptz(6) NOT NULL,
  expires_at   timestamptz(6) NOT NULL,
  PRIMARY KEY (org_id, key)
);
CREATE INDEX idempotency_by_expiry ON organization.idempotency (expires_at);

-- Called inside the statement that makes the effect; nothing without a key. A record that is there, and has not
-- expired, undoes the statement by a violation of idempotency_pkey.
CREATE FUNCTION organization.remember(org uuid, idempotency_key text, request_hash bytea, verb text, resource uuid, outcome jsonb)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  IF idempotency_key IS NULL THEN RETURN; END IF;
  INSERT INTO organization.idempotency AS i
    (org_id, key, request_hash, verb, resource_id, outcome, created_at, expires_at)
  VALUES (org, idempotency_key, request_hash, verb, resource, outcome, at, at + interval '24 hours')
  ON CONFLICT (org_id, key) DO UPDATE
    SET request_hash = excluded.request_hash, verb = excluded.verb, resource_id = excluded.resource_id,
        outcome = excluded.outcome, answer = NULL, created_at = excluded.created_at, expires_at = excluded.expires_at
    WHERE i.expires_at <= at;
  IF NOT FOUND THEN
    RAISE unique_violation USING MESSAGE = 'the idempotency key is on record', CONSTRAINT = 'idempotency_pkey',
      SCHEMA = 'organization', TABLE = 'idempotency';
  END IF;
END
$$;

-- billing ------------------------------------------------------------------------------------

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
     "included_vcpu_hours": 100, "included_memory_gib_hours": 200}', 'USD', 5000000, 1600000, 11000, 27000, false, false);

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

-- sandbox ------------------------------------------------------------------------------------

-- What an organization's sandboxes take of its limits, counted by the statements that make the change.
CREATE TABLE sandbox.places (
  org_id             uuid PRIMARY KEY,
  total_sandboxes    integer NOT NULL CHECK (total_sandboxes >= 0),
  ephemeral_running  integer NOT NULL CHECK (ephemeral_running >= 0),
  persistent_running integer NOT NULL CHECK (persistent_running >= 0)
);
INSERT INTO sandbox.places (org_id, total_sandboxes, ephemeral_running, persistent_running)
SELECT s.org_id, count(*), count(*) FILTER (WHERE s.ephemeral AND r.held), count(*) FILTER (WHERE NOT s.ephemeral AND r.held)
FROM sandbox.sandboxes s,
     LATERAL (SELECT s.status IN ('starting', 'running') AS held) r
WHERE s.destroyed_at IS NULL GROUP BY s.org_id;

-- The uptime that the plan allowed when the run was admitted; null: any.
ALTER TABLE sandbox.runs ADD COLUMN uptime_secs bigint;
