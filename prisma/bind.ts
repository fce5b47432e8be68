import type { Database } from "./database.ts";

/** A query that knows its database: what a store is made of. */
export function bind<Args extends unknown[], Result>(
  database: Database,
  query: (database: Database, ...args: Args) => Result,
): (...args: Args) => Result {
  return (...args) => query(database, ...args);
}
