// What no snapshot of the database may show of volumes, each as a sentence. Plans and overrides may be changed without
// a word, so what an organization holds against its limit is not among it.
export const WRONG_VOLUMES_SQL = `
SELECT v.id || ': deleted, and ' || s.name || ' is ' || s.status || ' with it' AS fault
FROM sandbox.sandboxes s JOIN sandbox.mounted_volumes m ON m.sandbox_id = s.id
JOIN sandbox.runs r ON r.sandbox_id = s.id AND r.closed_at IS NULL
JOIN sandbox.volumes v ON v.id = m.volume_id
WHERE s.destroyed_at IS NULL AND v.deleted_at IS NOT NULL
UNION ALL
SELECT m.volume_id || ': gone, and ' || s.name || ' is ' || s.status || ' with it'
FROM sandbox.sandboxes s JOIN sandbox.mounted_volumes m ON m.sandbox_id = s.id
JOIN sandbox.runs r ON r.sandbox_id = s.id AND r.closed_at IS NULL
WHERE s.destroyed_at IS NULL AND NOT EXISTS (SELECT FROM sandbox.volumes v WHERE v.id = m.volume_id)
UNION ALL
SELECT s.name || ' mounts what is written down nowhere' FROM sandbox.sandboxes s
WHERE s.requires && '{mounts.bind, mounts.disk_image, mounts.named, patches.copy}'
  AND NOT EXISTS (SELECT FROM sandbox.mounted_volumes m WHERE m.sandbox_id = s.id)
UNION ALL
SELECT v.id || ': deleted, and still metered' FROM sandbox.volumes v JOIN billing.storage_samples b ON b.volume_id = v.id
WHERE v.deleted_at IS NOT NULL
UNION ALL
SELECT v.id || ': not metered' FROM sandbox.volumes v
WHERE v.deleted_at IS NULL AND (v.kind = 'managed' OR v.measured_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM billing.storage_samples b WHERE b.volume_id = v.id)
UNION ALL
SELECT w.id || ': a write of no volume' FROM sandbox.volume_writes w
WHERE NOT EXISTS (SELECT FROM sandbox.volumes v WHERE v.id = w.volume_id AND v.deleted_at IS NULL)
UNION ALL
SELECT v.id || ': over its capacity, or not, against its word' FROM sandbox.volumes v
WHERE v.deleted_at IS NULL
  AND (v.over_capacity_at IS NULL) = coalesce(v.used_bytes > v.capacity_gib * 1073741824::bigint, false)
UNION ALL
SELECT org_id || ': volumes and their events disagree' FROM (
  SELECT org_id, 1 AS n FROM sandbox.volumes WHERE kind = 'managed' AND deleted_at IS NULL
  UNION ALL
  SELECT org_id, CASE event_type WHEN 'volume_created' THEN -1 ELSE 1 END FROM organization.events
  WHERE event_type IN ('volume_created', 'volume_deleted')
) each
GROUP BY org_id HAVING sum(n) <> 0`;

export interface WrongVolume {
  fault: string;
}
