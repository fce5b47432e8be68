-- Which volumes are to be measured soon, and changes that no statement can make, done once for each idempotency key.

-- orchestrator -------------------------------------------------------------------------------

-- Volumes that may have changed up to a moment: files were written, or a sandbox has it mounted. One that was measured
-- before that moment is measured again.
CREATE TABLE orchestrator.volume_changes (
  volume_id uuid PRIMARY KEY,
  until     timestamptz(6) NOT NULL
);

-- organization -------------------------------------------------------------------------------

-- An effect outside the database cannot be in one statement with its record. So the intent is on record before it, held by
-- whoever makes it for as long as they say so, and becomes the outcome behind it. What is left of an intent whose holder
-- died says to the next one that the effect may be there, wholly or in part.

-- `taken`: it is yours; `again`: likewise, and somebody had it before; `busy`: somebody has it; `known`: there is an outcome.
CREATE FUNCTION organization.intend(org uuid, idempotency_key text, asked_hash bytea, asked_verb text, resource uuid,
                                    intender uuid, lease_secs double precision)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  known organization.idempotency;
  held jsonb := jsonb_build_object('intent', jsonb_build_object('holder', intender,
    'until', clock_timestamp() + lease_secs * interval '1 second'));
BEGIN
  BEGIN
    PERFORM organization.remember(org, idempotency_key, asked_hash, asked_verb, resource, held);
    RETURN jsonb_build_object('state', 'taken');
  EXCEPTION WHEN unique_violation THEN
    -- Something is on record.
  END;
  SELECT * INTO known FROM organization.idempotency i WHERE i.org_id = org AND i.key = idempotency_key FOR UPDATE;
  -- Withdrawn, at this moment.
  IF NOT FOUND THEN RETURN jsonb_build_object('state', 'busy'); END IF;
  IF known.request_hash <> asked_hash THEN RETURN jsonb_build_object('state', 'reused'); END IF;
  IF NOT known.outcome ? 'intent' THEN
    RETURN jsonb_build_object('state', 'known', 'outcome', known.outcome);
  END IF;
  IF (known.outcome->'intent'->>'until')::timestamptz > clock_timestamp() THEN
    RETURN jsonb_build_object('state', 'busy');
  END IF;
  UPDATE organization.idempotency i SET outcome = held WHERE i.org_id = org AND i.key = idempotency_key;
  RETURN jsonb_build_object('state', 'again');
END
$$;

-- Goes on holding an intent, or with 0 leaves it to the next one. Each answers whether it was still held.
CREATE FUNCTION organization.hold_intent(org uuid, idempotency_key text, intender uuid, lease_secs double precision)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE organization.idempotency i
  SET outcome = jsonb_set(i.outcome, '{intent,until}', to_jsonb(clock_timestamp() + lease_secs * interval '1 second'))
  WHERE i.org_id = org AND i.key = idempotency_key AND i.outcome->'intent'->>'holder' = intender::text;
  RETURN FOUND;
END
$$;

CREATE FUNCTION organization.settle_intent(org uuid, idempotency_key text, intender uuid, settled jsonb)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE organization.idempotency i SET outcome = settled
  WHERE i.org_id = org AND i.key = idempotency_key AND i.outcome->'intent'->>'holder' = intender::text;
  RETURN FOUND;
END
$$;

-- Nothing was done, and the key is as if it had not been used.
CREATE FUNCTION organization.withdraw_intent(org uuid, idempotency_key text, intender uuid)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  DELETE FROM organization.idempotency i
  WHERE i.org_id = org AND i.key = idempotency_key AND i.outcome->'intent'->>'holder' = intender::text;
  RETURN FOUND;
END
$$;
