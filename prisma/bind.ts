import { inSpan } from "../runtime/tracing/spans.ts";
import type { Database } from "./database.ts";

/** A query that knows its database: what a store is made of. In a trace each is a span by the query's name. */
export function bind<Args extends unknown[], Result>(
  database: Database,
  query: (database: Database, ...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  const { name } = query;
  const attributes = { "db.system.name": "postgresql", "db.query.summary": name };
  return (...args) => inSpan(name, { kind: "client", attributes }, () => query(database, ...args));
}
