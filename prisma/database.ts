import { createHash } from "node:crypto";
import { PrismaPg } from "@prisma/adapter-pg";
import { forAll } from "../runtime/current-call.ts";
import { PrismaClient } from "./client/client.ts";
import { dig } from "./dig.ts";
import { BoundedPool, type PoolNumbers } from "./pool.ts";
import { runStatement } from "./statement.ts";
import { asUnavailable } from "./unavailable.ts";

/**
 * The database as stores see it. Values come out plain: Date, number, bigint, string, parsed JSON.
 * While it is not there every call throws ServiceError SERVICE_UNAVAILABLE.
 */
export interface Database {
  /** Models, for cold paths. */
  prisma: ReturnType<typeof withUnavailable>;
  /** One statement, prepared once a connection; parameters are `$1`, `$2`, … A deadlock's victim is run again. */
  query<Row>(sql: string, ...values: unknown[]): Promise<Row[]>;
  /** Of its connections now. */
  pool(): PoolNumbers;
  close(): Promise<void>;
}

/** How PostgreSQL refused a statement. */
export interface Refusal {
  /** SQLSTATE, such as `23505`. */
  code: string;
  constraint: string | undefined;
}

/** The server ends a statement somewhat before the client would give it up, so that it has no late effect. */
const SERVER_FIRST_MS = 2_000;

/** How long a new connection may take, and how long a statement may wait for a free one. */
const CONNECT_MS = 5_000;

/** How long a statement may wait for a row that another transaction holds: somebody else needs its connection. */
const LOCK_MS = 4_000;

export interface DatabaseOptions {
  /** Most connections held; 10 unless set. */
  poolSize?: number;
  /** Most statements that wait for one; 2,000 unless set. */
  queueSize?: number;
  /** How long a statement may take, in milliseconds; 10,000 unless set. */
  queryTimeoutMs?: number;
  /** Told whenever a statement is refused because the queue is full or too slow. */
  onRefused?: (error: Error) => void;
}

/**
 * Opens a pool on a `postgresql://` URL; connects on first use. A database that falls silent is unavailable, not
 * waited for without end: at most `queryTimeoutMs` after the 5 s that a connection may take.
 */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const pool = openPool(url, options);
  const adapter = new PrismaPg(pool, {
    statementNameGenerator: ({ sql }) => statementName(sql),
  });
  const prisma = new PrismaClient({ adapter });
  const connected = adapter.connect();
  let closed: Promise<void> | undefined;
  return {
    prisma: withUnavailable(prisma),
    query: async <Row>(sql: string, ...values: unknown[]) => {
      const own = await connected;
      return withoutDeadlock(() => runStatement<Row>(own, sql, values)).catch(rethrow);
    },
    pool: () => pool.numbers,
    close: () => {
      closed ??= prisma.$disconnect().then(() => pool.end());
      return closed;
    },
  };
}

function openPool(
  url: string,
  { poolSize = 10, queueSize = 2_000, queryTimeoutMs = 10_000, onRefused }: DatabaseOptions,
): BoundedPool {
  const statementMs = Math.max(1, queryTimeoutMs - SERVER_FIRST_MS);
  return new BoundedPool({
    connectionString: url,
    max: poolSize,
    queueSize,
    queueTimeoutMs: CONNECT_MS,
    onRefused,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: queryTimeoutMs,
    statement_timeout: statementMs,
    lock_timeout: Math.min(LOCK_MS, statementMs),
    keepAlive: true,
    // Compiling a statement takes longer than any of ours does.
    options: "-c jit=off",
  });
}

function withUnavailable(prisma: PrismaClient) {
  // Prisma asks in one statement for what several calls look up at the same moment.
  return prisma.$extends({
    query: {
      $allModels: { $allOperations: ({ args, query }) => forAll(() => query(args)).catch(rethrow) },
    },
  });
}

function rethrow(error: unknown): never {
  throw asUnavailable(error);
}

const DEADLOCK = "40P01";
const DEADLOCK_TRIES = 5;

// Two statements may each wait for a unique name that the other has; PostgreSQL then undoes one,
// which was a transaction of its own and can be run again.
async function withoutDeadlock<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      if (tries === DEADLOCK_TRIES || refusal(error)?.code !== DEADLOCK) throw error;
    }
  }
}

// Statements are few and written by us, so the cache stays small; one that Prisma
// generates is left unprepared, for those can be many.
const names = new Map<string, string>();
const MOST_NAMES = 500;

function statementName(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  if (names.size >= MOST_NAMES) return "";
  const name = createHash("sha1").update(sql).digest("base64url");
  names.set(sql, name);
  return name;
}

/** What PostgreSQL said, where an error is a refused statement; else undefined. */
export function refusal(error: unknown): Refusal | undefined {
  const cause = dig(error, "meta", "driverAdapterError", "cause") ?? dig(error, "cause");
  const code = dig(cause, "originalCode");
  if (typeof code !== "string") return undefined;
  return { code, constraint: constraintOf(cause) };
}

function constraintOf(cause: unknown): string | undefined {
  const named = dig(cause, "constraint", "index");
  if (typeof named === "string") return named;
  const quoted = /constraint "([^"]+)"/.exec(String(dig(cause, "originalMessage") ?? ""));
  return quoted?.[1];
}
