import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { forAll, inCall } from "../../runtime/current-call.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

// A pool of three, and a row that somebody holds.

let at: TestDatabase;
let database: Database;
let holder: pg.Client;
const refused: string[] = [];

beforeEach(async () => {
  at = await createTestDatabase();
  const onRefused = (error: Error) => void refused.push(error.message);
  database = openDatabase(at.url, { poolSize: 3, queueSize: 4, onRefused });
  await database.query("CREATE TABLE held (n int)");
  await database.query("INSERT INTO held VALUES (0)");
  holder = new pg.Client(at.url);
  await holder.connect();
  await holder.query("BEGIN; SELECT * FROM held FOR UPDATE");
  refused.length = 0;
});
afterEach(async () => {
  await holder.end();
  await database.close();
  await at.close();
});

const unavailable = { reason: "SERVICE_UNAVAILABLE" };
const blocked = () => database.query("UPDATE held SET n = n + 1 RETURNING n");
const one = () => database.query<{ one: number }>("SELECT 1 AS one");
const as = <T>(owner: string, work: () => Promise<T>, signal?: AbortSignal) =>
  inCall({ owner, signal }, work);

test("beyond the connections statements wait, beyond the queue they are refused, and all is well afterwards", async () => {
  const waiting = Array.from({ length: 7 }, blocked);
  await expect
    .poll(() => database.pool())
    .toMatchObject({ size: 3, inUse: 3, waiting: 4, refused: 0 });
  await expect(one()).rejects.toMatchObject(unavailable);
  expect(refused).toEqual(["the database is busy: no more statements may wait for a connection"]);
  await holder.query("ROLLBACK");
  const rows = await Promise.all(waiting);
  expect(rows.flat()).toHaveLength(7);
  expect(database.pool()).toMatchObject({ inUse: 0, waiting: 0, refused: 1 });
  expect(await one()).toEqual([{ one: 1 }]);
});

test("an organization that waits for a row leaves connections and queue to others", async () => {
  const waiting = Array.from({ length: 4 }, () => as("a", blocked));
  await expect.poll(() => database.pool()).toMatchObject({ inUse: 2, waiting: 2 });
  await expect(as("a", blocked)).rejects.toMatchObject(unavailable);
  expect(database.pool()).toMatchObject({ inUse: 2, waiting: 2 });
  expect(await as("b", one)).toEqual([{ one: 1 }]);
  expect(await one()).toEqual([{ one: 1 }]);
  await holder.query("ROLLBACK");
  await Promise.all(waiting);
});

test("a row that stays locked is unavailable, and its connection free again", async () => {
  await expect(blocked()).rejects.toMatchObject(unavailable);
  expect(database.pool()).toMatchObject({ inUse: 0, waiting: 0 });
});

test("a read whose call is over before it has a connection never runs; what others wait for does", async () => {
  const waiting = Array.from({ length: 3 }, blocked);
  const gone = new AbortController();
  const write = () => database.query("INSERT INTO held VALUES (1)");
  const [dropped, shared] = [
    as("a", write, gone.signal),
    as("b", () => forAll(write), gone.signal),
  ];
  await expect.poll(() => database.pool().waiting).toBe(2);
  gone.abort(new Error("gone"));
  await expect(dropped).rejects.toThrow();
  expect(database.pool().waiting).toBe(1);
  await holder.query("ROLLBACK");
  await Promise.all([...waiting, shared]);
  expect(await database.query("SELECT count(*)::int AS n FROM held")).toEqual([{ n: 2 }]);
  // What a call has left behind is not ended by it.
  let later = one;
  await as("a", async () => {
    later = () => Promise.resolve().then(one);
  });
  expect(await later()).toEqual([{ one: 1 }]);
});

test("a connection that breaks is no turn lost", async () => {
  const broken = Array.from({ length: 3 }, () =>
    database.query("SELECT pg_terminate_backend(pg_backend_pid())"),
  );
  for (const call of await Promise.allSettled(broken)) expect(call.status).toBe("rejected");
  expect(database.pool()).toMatchObject({ inUse: 0, waiting: 0 });
  expect(await Promise.all(Array.from({ length: 6 }, one))).toHaveLength(6);
});
