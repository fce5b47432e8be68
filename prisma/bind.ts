import { inSpan } from "../runtime/tracing/spans.ts";
import type { Database } from "./database.ts";

/** A query that knows its database: what a store is made of. In a trace each is a span by the query's name. */
export function bind<Args extends unknown[], Result>(
  database: Database,
  query: (database: Database, ...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return spanned(query.name, (...args: Args) => query(database, ...args));
}

/** The same of one that knows its database already. */
export function spanned<Args extends unknown[], Result>(
  name: string,
  query: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  const attributes = { "db.system.name": "postgresql", "db.query.summary": name };
  return (...args) => inSpan(name, { kind: "client", attributes }, () => query(...args));
}
