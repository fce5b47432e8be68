import { bind } from "../../prisma/bind.ts";
import type { Database } from "../../prisma/database.ts";
import { holdLease, installationId, listEngines, releaseLease } from "./store/lease.ts";
import {
  isOpen,
  listBelieved,
  listDestroyed,
  listDue,
  listOpen,
  listUnknown,
  listUnwanted,
} from "./store/work.ts";

export type { DueRun, OpenRun } from "./store/work.ts";
export type { Database };

/** Every query of the orchestrator; only the files of `store/` know SQL. It writes leases alone. */
export type Store = ReturnType<typeof createStore>;

export function createStore(database: Database) {
  return {
    holdLease: bind(database, holdLease),
    releaseLease: bind(database, releaseLease),
    listEngines: bind(database, listEngines),
    installationId: bind(database, installationId),
    listDue: bind(database, listDue),
    listDestroyed: bind(database, listDestroyed),
    listUnwanted: bind(database, listUnwanted),
    listOpen: bind(database, listOpen),
    isOpen: bind(database, isOpen),
    listUnknown: bind(database, listUnknown),
    listBelieved: bind(database, listBelieved),
  };
}
