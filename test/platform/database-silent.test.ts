import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

// A network that drops every packet without saying so: connections stay open, and nothing comes back.

let at: TestDatabase;
let database: Database;
let network: Server;
let silent = false;
const sockets = new Set<Socket>();

beforeAll(async () => {
  at = await createTestDatabase();
  const { host, port, user = "", database: name } = new pg.Client(at.url);
  network = createServer((client) => {
    const server = connect(`${host}/.s.PGSQL.${port}`);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from.on("error", () => {}).on("close", () => to.destroy()));
      from.on("data", (data) => silent || to.write(data));
    }
  });
  await new Promise<void>((go) => network.listen(0, "127.0.0.1", go));
  const { port: own } = network.address() as AddressInfo;
  const url = `postgresql://${user}@127.0.0.1:${own}/${name}`;
  database = openDatabase(url, { poolSize: 2, queryTimeoutMs: 3_000 });
});
afterAll(async () => {
  await database.close();
  for (const socket of sockets) socket.destroy();
  network.close();
  await at.close();
});

const unavailable = { reason: "SERVICE_UNAVAILABLE" };

test("a database that falls silent is unavailable, for held connections and for new ones", async () => {
  await Promise.all([database.query("SELECT 1 AS one"), database.query("SELECT 1 AS one")]);
  silent = true;
  const calls = Array.from({ length: 4 }, () => database.query("SELECT 1 AS one"));
  const answers = await Promise.allSettled(calls);
  for (const answer of answers) expect(answer).toMatchObject({ reason: unavailable });
  await expect(database.query("SELECT 1 AS one")).rejects.toMatchObject(unavailable);
  silent = false;
  await expect
    .poll(() => database.query("SELECT 1 AS one").catch(() => []), { timeout: 20_000 })
    .toEqual([{ one: 1 }]);
});

test("a statement that takes too long is ended by the server, and is unavailable", async () => {
  await expect(database.query("SELECT count(pg_sleep(60))")).rejects.toMatchObject(unavailable);
  const left = () =>
    database.query(
      "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid() AND state = 'active'",
    );
  await expect.poll(left).toEqual([]);
});
