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

-- One row an organization, changed by each of its verbs: room on its page keeps the versions there.
ALTER TABLE sandbox.places SET (fillfactor = 50);
