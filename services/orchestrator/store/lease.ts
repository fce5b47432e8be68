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
 * Takes or renews the lease of an engine; a new holder gets a new epoch. One engine leads a database: the turn
 * is the installation's one row, whose lock makes two engines that ask at once wait for each other.
 * @returns the epoch, or undefined while somebody else holds the lease, or another engine leads
 */
export async function holdLease(database: Database, claim: Claim): Promise<bigint | undefined> {
  const [row] = await database.query<{ epoch: bigint }>(
    `WITH turn AS (
       UPDATE orchestrator.installation
       SET led_engine = $1, led_until = clock_timestamp() + $3::int * interval '1 second'
       WHERE led_engine IS NULL OR led_engine = $1 OR led_until < clock_timestamp()
       RETURNING led_until
     )
     INSERT INTO orchestrator.leases AS l
       (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     SELECT $1, $2::uuid, 1, led_until, led_until - $3::int * interval '1 second', $4::text[], $5::int, $6::bigint
     FROM turn
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

/** Every machine of an engine was compared with its run, by a list that was asked for so long ago. */
export async function recordObserved(
  database: Database,
  engine: string,
  epoch: bigint,
  agoMs: number,
): Promise<void> {
  await database.query(
    `UPDATE orchestrator.leases SET observed_at = clock_timestamp() - $3::float8 * interval '1 millisecond'
     WHERE engine = $1 AND epoch = $2::bigint RETURNING engine`,
    engine,
    epoch,
    agoMs,
  );
}

/** When every machine of an engine was last compared with its run; null: never. */
export async function lastObserved(database: Database, engine: string): Promise<Date | null> {
  const [row] = await database.query<{ observedAt: Date | null }>(
    `SELECT observed_at AS "observedAt" FROM orchestrator.leases WHERE engine = $1`,
    engine,
  );
  return row?.observedAt ?? null;
}

/** Another engine that leads now. */
export async function findOther(
  database: Database,
  engine: string,
): Promise<{ engine: string } | undefined> {
  const [row] = await database.query<{ engine: string }>(
    `SELECT led_engine AS engine FROM orchestrator.installation
     WHERE led_engine <> $1 AND led_until >= clock_timestamp()`,
    engine,
  );
  return row;
}
