import type { Database } from "../../../prisma/database.ts";
import type { Capacity } from "../engines/engine.ts";

/** What a leader publishes with its lease. */
export interface Claim {
  engine: string;
  /** UUID of this orchestrator process. */
  holder: string;
  ttlSecs: number;
  features: readonly string[];
  capacity: Capacity;
}

const NOBODY = "00000000-0000-0000-0000-000000000000";

/**
 * Takes or renews the lease of an engine; a new holder gets a new epoch.
 * @returns the epoch, or undefined while somebody else holds the lease
 */
export async function holdLease(database: Database, claim: Claim): Promise<bigint | undefined> {
  const [row] = await database.query<{ epoch: bigint }>(
    `INSERT INTO orchestrator.leases AS l
       (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     SELECT $1, $2::uuid, 1, at.now + $3::int * interval '1 second', at.now, $4::text[], $5::int, $6::bigint
     FROM (SELECT clock_timestamp() AS now) at
     ON CONFLICT (engine) DO UPDATE
     SET holder = excluded.holder, expires_at = excluded.expires_at, last_seen_at = excluded.last_seen_at,
         features = excluded.features, vcpus = excluded.vcpus, memory_mib = excluded.memory_mib,
         epoch = l.epoch + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END
     WHERE l.holder IN (excluded.holder, '${NOBODY}') OR l.expires_at < excluded.last_seen_at
     RETURNING epoch`,
    claim.engine,
    claim.holder,
    claim.ttlSecs,
    claim.features,
    claim.capacity.vcpus,
    BigInt(claim.capacity.memoryMib),
  );
  return row?.epoch;
}

/**
 * Gives a lease back, so that the next orchestrator need not wait for its end. Until that end starts
 * are admitted as before: one that stands by has it within its next heartbeat.
 */
export async function releaseLease(
  database: Database,
  engine: string,
  holder: string,
): Promise<void> {
  await database.query(
    `UPDATE orchestrator.leases SET holder = '${NOBODY}'
     WHERE engine = $1 AND holder = $2::uuid RETURNING engine`,
    engine,
    holder,
  );
}

/** An engine as its leader last published it. */
export interface EngineRow {
  name: string;
  alive: boolean;
  lastSeenAt: Date;
  features: string[];
  capacity: Capacity;
}

export async function listEngines(database: Database): Promise<EngineRow[]> {
  const leases = await database.prisma.lease.findMany({ orderBy: { engine: "asc" } });
  const now = new Date();
  return leases.map((lease) => ({
    name: lease.engine,
    alive: lease.expiresAt > now,
    lastSeenAt: lease.lastSeenAt,
    features: lease.features,
    capacity: { vcpus: lease.vcpus, memoryMib: Number(lease.memoryMib) },
  }));
}

/** The id that engines mark this installation's machines with. */
export async function installationId(database: Database): Promise<string> {
  const { id } = await database.prisma.installation.findFirstOrThrow();
  return id;
}
