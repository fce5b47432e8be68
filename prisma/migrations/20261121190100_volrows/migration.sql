-- Volumes: how they change, who holds them, what is promised of their room, and what they were found to hold.

-- Sandboxes of before that take something from the host volume.
INSERT INTO sandbox.mounted_volumes (sandbox_id, name, volume_id)
SELECT s.id, '', v.id FROM sandbox.sandboxes s JOIN sandbox.volumes v ON v.org_id = s.org_id AND v.kind = 'host'
WHERE s.requires && '{mounts.bind, mounts.disk_image, patches.copy}';

-- In bytes. Null stays null.
CREATE FUNCTION sandbox.gib(amount bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT amount * 1073741824 $$;

-- What all volumes of an organization may hold together, in bytes; null: any amount.
CREATE FUNCTION sandbox.storage_limit(org uuid) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT sandbox.gib((billing.limits(org)->>'max_total_storage_gib')::bigint)
$$;

-- The functions below lock an organization's storage first, then a volume: one order, so no deadlock. Starts hold volumes
-- by key alone, which nothing but a delete waits for. Each statement of a function sees what was committed before it, so
-- that who waited judges what the other one left.

CREATE FUNCTION sandbox.lock_storage(org uuid) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO sandbox.storage (org_id) VALUES (org) ON CONFLICT DO NOTHING;
  PERFORM FROM sandbox.storage s WHERE s.org_id = org FOR UPDATE;
END
$$;

-- Called by a statement that admits a start: keeps what the sandbox mounts from being deleted until that is committed.
-- False: something was deleted.
CREATE FUNCTION sandbox.hold_volumes(mounting uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM sandbox.volumes v
  WHERE v.id IN (SELECT m.volume_id FROM sandbox.mounted_volumes m WHERE m.sandbox_id = mounting) FOR KEY SHARE OF v;
  RETURN NOT EXISTS (
    SELECT FROM sandbox.mounted_volumes m
    WHERE m.sandbox_id = mounting
      AND NOT EXISTS (SELECT FROM sandbox.volumes v WHERE v.id = m.volume_id AND v.deleted_at IS NULL));
END
$$;

CREATE FUNCTION sandbox.append_metering_event(org uuid, type text, payload jsonb, at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
  SELECT organization.append_event(org, type, '{"kind": "system", "code": "metering", "label": "Metering"}', payload, at)
$$;

-- Writes down whether a volume holds more than its capacity, with an event where that is new.
CREATE FUNCTION sandbox.judge_capacity(volume uuid, at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v sandbox.volumes;
BEGIN
  UPDATE sandbox.volumes u SET over_capacity_at = CASE WHEN u.over_capacity_at IS NULL THEN at END
  WHERE u.id = volume AND (u.over_capacity_at IS NULL) = coalesce(u.used_bytes > sandbox.gib(u.capacity_gib), false)
  RETURNING * INTO v;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM sandbox.append_metering_event(v.org_id,
    CASE WHEN v.over_capacity_at IS NULL THEN 'volume_capacity_restored' ELSE 'volume_capacity_exceeded' END,
    jsonb_build_object('volume_id', v.id, 'name', v.name, 'used_bytes', v.used_bytes,
                       'capacity_bytes', sandbox.gib(v.capacity_gib)), at);
END
$$;

-- The same of all volumes of an organization together. Its storage is locked.
CREATE FUNCTION sandbox.judge_storage(org uuid, at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  most bigint := sandbox.storage_limit(org);
  held bigint;
  is_over boolean;
BEGIN
  -- Nothing is added up where nothing is limited, and nothing was.
  IF most IS NULL AND EXISTS (SELECT FROM sandbox.storage s WHERE s.org_id = org AND s.over_limit_at IS NULL) THEN
    RETURN;
  END IF;
  SELECT coalesce(sum(v.used_bytes), 0) INTO held FROM sandbox.volumes v WHERE v.org_id = org AND v.deleted_at IS NULL;
  is_over := coalesce(held > most, false);
  UPDATE sandbox.storage s SET over_limit_at = CASE WHEN is_over THEN at END
  WHERE s.org_id = org AND (s.over_limit_at IS NULL) = is_over;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM sandbox.append_metering_event(org,
    CASE WHEN is_over THEN 'storage_limit_exceeded' ELSE 'storage_limit_restored' END,
    jsonb_build_object('used_bytes', held, 'limit_bytes', most), at);
END
$$;

-- Changes what is given: the capacity (null: none) where `caps`, the labels where they are not null. What is as it was
-- already writes no event. No row: there is no such volume, or it may not have this capacity.
CREATE FUNCTION sandbox.update_volume(org uuid, volume uuid, caps boolean, capacity integer, new_labels jsonb, actor jsonb)
RETURNS SETOF sandbox.volumes LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  was sandbox.volumes;
  v sandbox.volumes;
BEGIN
  SELECT * INTO was FROM sandbox.volumes u
  WHERE u.id = volume AND u.org_id = org AND u.deleted_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF caps AND capacity IS NOT NULL AND (was.kind = 'host' OR sandbox.gib(capacity) > sandbox.storage_limit(org)) THEN
    RETURN;
  END IF;
  UPDATE sandbox.volumes u
  SET capacity_gib = CASE WHEN caps THEN capacity ELSE u.capacity_gib END, labels = coalesce(new_labels, u.labels),
      capped_at = CASE WHEN caps AND u.capacity_gib IS NULL THEN clock_timestamp() ELSE u.capped_at END,
      updated_at = greatest(clock_timestamp(), u.updated_at)
  WHERE u.id = volume AND (CASE WHEN caps THEN capacity ELSE u.capacity_gib END, coalesce(new_labels, u.labels))
                          IS DISTINCT FROM (u.capacity_gib, u.labels)
  RETURNING * INTO v;
  IF FOUND THEN
    PERFORM organization.append_event(org, 'volume_updated', actor,
      jsonb_build_object('volume_id', volume, 'name', v.name, 'before', sandbox.volume_terms(was, v),
                         'after', sandbox.volume_terms(v, was)), v.updated_at);
    PERFORM sandbox.judge_capacity(volume, v.updated_at);
  END IF;
  RETURN QUERY SELECT * FROM sandbox.volumes u WHERE u.id = volume;
END
$$;

-- What of a volume may be changed and is not as in `other`.
CREATE FUNCTION sandbox.volume_terms(v sandbox.volumes, other sandbox.volumes) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN v.capacity_gib IS DISTINCT FROM other.capacity_gib
              THEN jsonb_build_object('capacity_gib', v.capacity_gib) ELSE '{}' END
      || CASE WHEN v.labels <> other.labels THEN jsonb_build_object('labels', v.labels) ELSE '{}' END
$$;

-- No row: there is no such volume, it is the host volume, or a sandbox in one of the statuses `holding` mounts it.
CREATE FUNCTION sandbox.delete_volume(org uuid, volume uuid, holding text[], actor jsonb)
RETURNS SETOF sandbox.volumes LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v sandbox.volumes;
BEGIN
  PERFORM sandbox.lock_storage(org);
  -- A start that holds it is waited for, and seen below; one that comes later waits, and finds it deleted.
  SELECT * INTO v FROM sandbox.volumes u
  WHERE u.id = volume AND u.org_id = org AND u.deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND OR v.kind = 'host' THEN RETURN; END IF;
  IF EXISTS (
    SELECT FROM sandbox.mounted_volumes m JOIN sandbox.sandboxes s ON s.id = m.sandbox_id
    WHERE m.volume_id = volume AND s.destroyed_at IS NULL AND s.status = ANY(holding)) THEN
    RETURN;
  END IF;
  UPDATE sandbox.volumes u SET deleted_at = greatest(clock_timestamp(), u.created_at) WHERE u.id = volume
  RETURNING * INTO v;
  DELETE FROM sandbox.volume_writes w WHERE w.org_id = org AND w.volume_id = volume;
  PERFORM billing.end_storage(volume, v.deleted_at);
  PERFORM organization.append_event(org, 'volume_deleted', actor,
    jsonb_build_object('volume_id', volume, 'name', v.name), v.deleted_at);
  PERFORM sandbox.judge_storage(org, v.deleted_at);
  RETURN NEXT v;
END
$$;

-- Writes down what a volume held when a measurement began. False: it is deleted, or a later one is known.
CREATE FUNCTION sandbox.report_volume_use(volume uuid, held bigint, began_at timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  at timestamptz;
  taken_at timestamptz;
  org uuid := (SELECT u.org_id FROM sandbox.volumes u WHERE u.id = volume AND u.deleted_at IS NULL);
  made_at timestamptz;
BEGIN
  IF org IS NULL THEN RETURN false; END IF;
  PERFORM sandbox.lock_storage(org);
  at := clock_timestamp();
  taken_at := least(began_at, at);
  -- One of the future is of before the clock was set back, and counts no more.
  UPDATE sandbox.volumes u SET used_bytes = held, measured_at = taken_at
  WHERE u.id = volume AND u.deleted_at IS NULL AND coalesce(u.measured_at < taken_at OR u.measured_at > at, true)
  RETURNING u.created_at INTO made_at;
  IF NOT FOUND THEN RETURN false; END IF;
  -- It has seen what was written before it began.
  DELETE FROM sandbox.volume_writes w WHERE w.org_id = org AND w.volume_id = volume AND w.settled_at <= taken_at;
  -- A clock that is cut off to the millisecond, or was set back, tells of a moment before there was a volume.
  PERFORM billing.accrue_storage(org, volume, held, greatest(taken_at, made_at));
  PERFORM sandbox.judge_capacity(volume, at);
  PERFORM sandbox.judge_storage(org, at);
  RETURN true;
END
$$;

-- Promises `wanted` bytes in all to a write, for an hour. Null: they may be written. An object without fields: there is
-- no such volume. Else why not: quota, limit, used (what is held or promised to others) and requested, as text.
CREATE FUNCTION sandbox.reserve_volume_bytes(org uuid, volume uuid, write uuid, wanted bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  capacity bigint;
  most bigint := sandbox.storage_limit(org);
  at timestamptz;
  is_known boolean;
  here numeric;
  together numeric;
BEGIN
  SELECT sandbox.gib(v.capacity_gib) INTO capacity FROM sandbox.volumes v
  WHERE v.id = volume AND v.org_id = org AND v.deleted_at IS NULL;
  IF NOT FOUND THEN RETURN '{}'; END IF;
  IF wanted = 0 OR capacity IS NULL AND most IS NULL THEN RETURN NULL; END IF;
  PERFORM sandbox.lock_storage(org);
  at := clock_timestamp();
  -- What was promised already is not asked for again, and who is done asks for nothing.
  UPDATE sandbox.volume_writes w SET expires_at = at + interval '1 hour'
  WHERE w.id = write AND (w.settled_at IS NOT NULL OR w.expires_at > at AND wanted <= w.bytes);
  IF FOUND THEN RETURN NULL; END IF;
  -- Measurements tell whole milliseconds.
  SELECT sandbox.gib(v.capacity_gib), coalesce(v.measured_at >= date_trunc('milliseconds', v.capped_at), v.capped_at IS NULL)
  INTO capacity, is_known FROM sandbox.volumes v
  WHERE v.id = volume AND v.org_id = org AND v.deleted_at IS NULL;
  IF NOT FOUND THEN RETURN '{}'; END IF;
  SELECT coalesce(sum(u.bytes) FILTER (WHERE u.id = volume), 0), coalesce(sum(u.bytes), 0) INTO here, together
  FROM (
    SELECT v.id, v.used_bytes AS bytes FROM sandbox.volumes v WHERE v.org_id = org AND v.deleted_at IS NULL
    UNION ALL
    SELECT w.volume_id, w.bytes FROM sandbox.volume_writes w
    WHERE w.org_id = org AND w.id <> write AND (w.settled_at IS NOT NULL OR w.expires_at > at)
  ) u;
  IF here + wanted > capacity OR capacity IS NOT NULL AND NOT is_known THEN
    RETURN jsonb_build_object('quota', 'capacity_gib', 'limit', capacity::text, 'used', here::text, 'requested', wanted::text);
  END IF;
  IF together + wanted > most THEN
    RETURN jsonb_build_object('quota', 'max_total_storage_gib', 'limit', most::text, 'used', together::text,
                              'requested', wanted::text);
  END IF;
  INSERT INTO sandbox.volume_writes AS w (id, org_id, volume_id, bytes, expires_at)
  VALUES (write, org, volume, wanted, at + interval '1 hour')
  ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes, expires_at = excluded.expires_at WHERE w.settled_at IS NULL;
  RETURN NULL;
END
$$;
