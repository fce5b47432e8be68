-- Who is told when keys change, and how an address is shown.

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
