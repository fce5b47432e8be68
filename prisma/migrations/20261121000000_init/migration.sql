-- Readable by `prisma migrate deploy`; applied at start by prisma/migrate.ts. Never edited once landed.
CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE SCHEMA IF NOT EXISTS organization;
CREATE SCHEMA IF NOT EXISTS sandbox;
CREATE SCHEMA IF NOT EXISTS orchestrator;

-- organization -------------------------------------------------------------------------------

CREATE TABLE organization.organizations (
  id           uuid PRIMARY KEY,
  name         text NOT NULL,
  slug         text NOT NULL UNIQUE,
  mfa_required boolean NOT NULL DEFAULT false,
  suspended_at timestamptz(6),
  created_at   timestamptz(6) NOT NULL DEFAULT now(),
  updated_at   timestamptz(6) NOT NULL DEFAULT now()
);

CREATE TABLE organization.api_keys (
  id         uuid PRIMARY KEY,
  org_id     uuid NOT NULL REFERENCES organization.organizations (id),
  name       text NOT NULL,
  key_sha256 bytea NOT NULL UNIQUE,
  prefix     text NOT NULL,
  last_four  text NOT NULL,
  created_at timestamptz(6) NOT NULL DEFAULT now(),
  expires_at timestamptz(6),
  revoked_at timestamptz(6)
);
CREATE INDEX ON organization.api_keys (org_id);

CREATE TABLE organization.events (
  id         uuid PRIMARY KEY,
  org_id     uuid NOT NULL,
  category   text NOT NULL,
  event_type text NOT NULL,
  actor      jsonb NOT NULL,
  payload    jsonb NOT NULL,
  timestamp  timestamptz(6) NOT NULL
);
CREATE INDEX ON organization.events (org_id, timestamp DESC, id DESC);

-- A version 7 UUID on PostgreSQL 15 and newer: 48 bits of milliseconds, then random.
CREATE FUNCTION organization.uuid7(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(floor(extract(epoch FROM at) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- Called inside the statement that makes the change. The category is the event type's first word.
CREATE FUNCTION organization.append_event(org uuid, type text, actor jsonb, payload jsonb, at timestamptz)
RETURNS uuid LANGUAGE sql VOLATILE AS $$
  INSERT INTO organization.events (id, org_id, category, event_type, actor, payload, timestamp)
  VALUES (organization.uuid7(at), org,
          CASE WHEN type LIKE 'api_key%' THEN 'api_key' ELSE split_part(type, '_', 1) END,
          type, actor, payload, at)
  RETURNING id
$$;

-- sandbox ------------------------------------------------------------------------------------

CREATE TABLE sandbox.sandboxes (
  id                   uuid PRIMARY KEY,
  org_id               uuid NOT NULL,
  name                 text NOT NULL,
  slug                 text NOT NULL,
  status               text NOT NULL CHECK (status IN ('created', 'starting', 'running', 'stopping', 'stopped', 'failed')),
  status_reason        text CHECK (status_reason IN ('scheduling', 'insufficient_capacity')),
  spec                 jsonb NOT NULL,
  requires             text[] NOT NULL,
  ephemeral            boolean NOT NULL,
  generation           integer NOT NULL DEFAULT 0,
  created_at           timestamptz(6) NOT NULL,
  started_at           timestamptz(6),
  stopped_at           timestamptz(6),
  last_failure_message text,
  expires_at           timestamptz(6),
  destroyed_at         timestamptz(6),
  CHECK (status_reason IS NULL OR status = 'starting')
);
-- A destroyed sandbox frees its name and slug at once.
CREATE UNIQUE INDEX sandboxes_name_key ON sandbox.sandboxes (org_id, name) WHERE destroyed_at IS NULL;
CREATE UNIQUE INDEX sandboxes_slug_key ON sandbox.sandboxes (slug) WHERE destroyed_at IS NULL;
CREATE INDEX sandboxes_page ON sandbox.sandboxes (org_id, created_at DESC, id DESC) WHERE destroyed_at IS NULL;
CREATE INDEX sandboxes_destroyed ON sandbox.sandboxes (destroyed_at) WHERE destroyed_at IS NOT NULL;
CREATE INDEX sandboxes_expiring ON sandbox.sandboxes (expires_at) WHERE expires_at IS NOT NULL AND destroyed_at IS NULL;

-- Outlives its sandbox: usage is counted from it.
CREATE TABLE sandbox.runs (
  sandbox_id       uuid NOT NULL,
  generation       integer NOT NULL,
  org_id           uuid NOT NULL,
  vcpus            integer NOT NULL,
  memory_mib       integer NOT NULL,
  disk_size_mib    integer,
  ephemeral        boolean NOT NULL,
  limit_secs       bigint,
  desired          text NOT NULL CHECK (desired IN ('running', 'stopped')),
  phase            text NOT NULL CHECK (phase IN ('starting', 'running', 'ended')),
  outcome          text CHECK (outcome IN ('stopped', 'failed')),
  admitted_at      timestamptz(6) NOT NULL,
  placed_at        timestamptz(6),
  running_at       timestamptz(6),
  stop_admitted_at timestamptz(6),
  machine_ended_at timestamptz(6),
  closed_at        timestamptz(6),
  due_at           timestamptz(6),
  PRIMARY KEY (sandbox_id, generation),
  CHECK ((phase = 'ended') = (closed_at IS NOT NULL)),
  EXCLUDE USING gist (sandbox_id WITH =, tstzrange(admitted_at, closed_at) WITH &&)
);
CREATE UNIQUE INDEX runs_one_open ON sandbox.runs (sandbox_id) WHERE closed_at IS NULL;
CREATE INDEX runs_due ON sandbox.runs (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE sandbox.sealed_specs (
  sandbox_id uuid PRIMARY KEY REFERENCES sandbox.sandboxes (id) ON DELETE CASCADE,
  sealed     bytea NOT NULL
);

-- Seconds from running to the limit of a run, null without one. A sandbox without a workload is
-- idle from the moment it runs.
CREATE FUNCTION sandbox.limit_secs(spec jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT least(
    nullif((spec->'lifecycle'->>'maxDurationSecs')::bigint, 0),
    CASE WHEN spec->'runtime'->>'cmd' IS NULL AND spec->'runtime'->>'entrypoint' IS NULL
         THEN nullif((spec->'lifecycle'->>'idleTimeoutSecs')::bigint, 0) END)
$$;

-- orchestrator -------------------------------------------------------------------------------

CREATE TABLE orchestrator.leases (
  engine       text PRIMARY KEY,
  holder       uuid NOT NULL,
  epoch        bigint NOT NULL,
  expires_at   timestamptz(6) NOT NULL,
  last_seen_at timestamptz(6) NOT NULL,
  features     text[] NOT NULL,
  vcpus        integer NOT NULL,
  memory_mib   bigint NOT NULL
);

CREATE TABLE orchestrator.installation (
  id uuid PRIMARY KEY
);
INSERT INTO orchestrator.installation (id) VALUES (gen_random_uuid());
