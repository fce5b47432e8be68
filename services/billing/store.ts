import type { Database } from "../../prisma/database.ts";

export type { Database };

/** Every query of the billing service; only the files of `store/` know SQL. */
export type Store = ReturnType<typeof createStore>;

export function createStore(_database: Database) {
  return {};
}
