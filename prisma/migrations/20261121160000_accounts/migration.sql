-- Who asks: members, keys' lives and who is told of them, idempotency records. What may be had at once: places. What is metered.

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

-- Pages with a filter.
CREATE INDEX events_by_type ON organization.events (org_id, event_type, timestamp DESC, id DESC);

-- Below it lies what uuid7 made before that moment, as events have it for their id: retention goes by the primary key. An
-- index on the time alone would be taken for pages too, and lead through the events of every other organization.
CREATE FUNCTION organization.uuid7_floor(at timestamptz) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT encode(overlay(decode('00000000000070008000000000000000', 'hex')
    PLACING substring(int8send(floor(extract(epoch FROM at) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 'hex')::uuid
$$;

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

-- Such as `a***@example.org`.
CREATE FUNCTION organization.redact_email(email text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(email, 1) || '***' || substring(email FROM '@[^@]*$')
$$;

-- Whatever changes what a look-up of a key answers is told to every process that caches them, with the commit. One that
-- writes a row by hand is no exception.
CREATE FUNCTION organization.tell_keys_changed(org uuid, api_key uuid) RETURNS void
LANGUAGE sql VOLATILE AS $$
  SELECT pg_notify('sandgate_keys', jsonb_build_object('org_id', org, 'api_key_id', coalesce(api_key::text, ''))::text)
$$;

CREATE FUNCTION organization.api_key_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN PERFORM organization.tell_keys_changed(OLD.org_id, OLD.id); END IF;
  -- The same words twice are told once.
  IF TG_OP <> 'DELETE' THEN PERFORM organization.tell_keys_changed(NEW.org_id, NEW.id); END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER api_keys_told AFTER INSERT OR DELETE ON organization.api_keys
  FOR EACH ROW EXECUTE FUNCTION organization.api_key_changed();
-- That a key was used is nobody's concern.
CREATE TRIGGER api_keys_change_told AFTER UPDATE ON organization.api_keys
  FOR EACH ROW WHEN ((OLD.id, OLD.org_id, OLD.name, OLD.key_sha256, OLD.expires_at, OLD.revoked_at)
    IS DISTINCT FROM (NEW.id, NEW.org_id, NEW.name, NEW.key_sha256, NEW.expires_at, NEW.revoked_at))
  EXECUTE FUNCTION organization.api_key_changed();

CREATE FUNCTION organization.organization_suspension_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM organization.tell_keys_changed(NEW.id, NULL);
  RETURN NULL;
END
$$;
CREATE TRIGGER organizations_suspension_told AFTER UPDATE ON organization.organizations
  FOR EACH ROW WHEN (OLD.suspended_at IS DISTINCT FROM NEW.suspended_at)
  EXECUTE FUNCTION organization.organization_suspension_changed();

-- sandbox ------------------------------------------------------------------------------------

-- What an organization's sandboxes take of its limits, counted by the statements that make the change.
CREATE TABLE sandbox.places (
  org_id             uuid PRIMARY KEY,
  total_sandboxes    integer NOT NULL CHECK (total_sandboxes >= 0),
  ephemeral_running  integer NOT NULL CHECK (ephemeral_running >= 0),
  persistent_running integer NOT NULL CHECK (persistent_running >= 0)
  -- Changed by each verb of its organization: room on its page keeps the versions there.
) WITH (fillfactor = 50);
INSERT INTO sandbox.places (org_id, total_sandboxes, ephemeral_running, persistent_running)
SELECT s.org_id, count(*), count(*) FILTER (WHERE s.ephemeral AND r.held), count(*) FILTER (WHERE NOT s.ephemeral AND r.held)
FROM sandbox.sandboxes s,
     LATERAL (SELECT s.status IN ('starting', 'running') AS held) r
WHERE s.destroyed_at IS NULL GROUP BY s.org_id;

-- The uptime that the plan allowed when the run was admitted; null: any.
ALTER TABLE sandbox.runs ADD COLUMN uptime_secs bigint;

-- Which limit a run reaches first: its spec's, or the uptime that the plan allowed when it was admitted.
CREATE FUNCTION sandbox.limit_code(spec jsonb, running_at timestamptz, workload_ended_at timestamptz, uptime_secs bigint)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN running_at + sandbox.limit_interval(uptime_secs) < least(
           CASE WHEN sandbox.idles(spec) THEN running_at ELSE workload_ended_at END + sandbox.limit_of(spec, 'idleTimeoutSecs'),
           running_at + sandbox.limit_of(spec, 'maxDurationSecs'),
           'infinity')
      THEN 'max_uptime'
    ELSE sandbox.limit_code(spec, running_at, workload_ended_at) END
$$;

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
