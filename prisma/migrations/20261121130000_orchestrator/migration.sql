-- What the orchestrator keeps as rows: who leads, what was last seen, who waits for room, when a workload ended.

-- The one row also says which engine leads: taken under its row lock, so two engines never lead at once.
ALTER TABLE orchestrator.installation
  ADD COLUMN led_engine text,
  ADD COLUMN led_until timestamptz(6);

-- Every machine that was not reported otherwise was up at this moment.
ALTER TABLE orchestrator.leases ADD COLUMN observed_at timestamptz(6);

ALTER TABLE sandbox.runs
  -- Since when it waits for room; null: it was never told to.
  ADD COLUMN waiting_since timestamptz(6),
  ADD COLUMN workload_ended_at timestamptz(6);

-- The queue: starts that no engine has, new ones and those that wait for room.
CREATE INDEX runs_new ON sandbox.runs (org_id, admitted_at)
  WHERE phase = 'starting' AND desired = 'running' AND placed_at IS NULL AND waiting_since IS NULL;
CREATE INDEX runs_waiting ON sandbox.runs (org_id, admitted_at, vcpus, memory_mib)
  WHERE phase = 'starting' AND desired = 'running' AND placed_at IS NULL AND waiting_since IS NOT NULL;
CREATE INDEX runs_queued ON sandbox.runs (admitted_at)
  WHERE phase = 'starting' AND desired = 'running' AND placed_at IS NULL;
-- Starts that the engine has.
CREATE INDEX runs_placed ON sandbox.runs (placed_at)
  WHERE phase = 'starting' AND desired = 'running' AND placed_at IS NOT NULL;
-- What takes room.
CREATE INDEX runs_room ON sandbox.runs (sandbox_id) INCLUDE (vcpus, memory_mib)
  WHERE closed_at IS NULL AND placed_at IS NOT NULL;
-- Stops, and the limits of runs; starts have the indexes above.
DROP INDEX sandbox.runs_due;
CREATE INDEX runs_ends ON sandbox.runs (due_at)
  WHERE due_at IS NOT NULL AND (desired = 'stopped' OR phase = 'running');

-- Whether a spec certainly has no workload. An image's own entrypoint may be one where only `cmd` is overridden.
CREATE FUNCTION sandbox.idles(spec jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN spec->'runtime'->>'entrypoint' IS NOT NULL
      THEN spec->'runtime'->'entrypoint' = '[]' AND coalesce(spec->'runtime'->'cmd', 'null') IN ('[]', 'null')
    ELSE spec->'runtime'->>'cmd' IS NULL END
$$;

-- Null stays null. Three hundred years stand for longer limits, which no timestamp can hold.
CREATE FUNCTION sandbox.limit_interval(secs bigint) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN secs > 10000000000 THEN 10000000000 ELSE secs END * interval '1 second'
$$;
-- 0 is none, as null.
CREATE FUNCTION sandbox.limit_of(spec jsonb, field text) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sandbox.limit_interval(nullif((spec->'lifecycle'->>field)::bigint, 0))
$$;
-- A run without a limit has nothing due.
UPDATE sandbox.runs SET due_at = NULL WHERE closed_at IS NULL AND phase = 'running' AND desired = 'running' AND limit_secs IS NULL;

CREATE OR REPLACE FUNCTION sandbox.limit_secs(spec jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT least(
    nullif((spec->'lifecycle'->>'maxDurationSecs')::bigint, 0),
    CASE WHEN sandbox.idles(spec) THEN nullif((spec->'lifecycle'->>'idleTimeoutSecs')::bigint, 0) END)
$$;

-- Which limit a run that began and whose workload ended then reaches first.
CREATE FUNCTION sandbox.limit_code(spec jsonb, running_at timestamptz, workload_ended_at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN CASE WHEN sandbox.idles(spec) THEN running_at ELSE workload_ended_at END
                     + sandbox.limit_of(spec, 'idleTimeoutSecs')
                   < coalesce(running_at + sandbox.limit_of(spec, 'maxDurationSecs'), 'infinity')
              THEN 'idle_timeout' ELSE 'max_duration' END
$$;
