import { bind } from "../../prisma/bind.ts";
import type { Database } from "../../prisma/database.ts";
import { findAccount } from "./store/accounts.ts";
import { clearExhaustion, insertExhaustion, listCapped, listRunning } from "./store/caps.ts";
import { assignPlan, hasPlan, listPlans, setOverrides, setPlan } from "./store/plans.ts";
import { meteringLag, rollUp } from "./store/roll-up.ts";
import { findStoredBytes, listVolumeDays, sumStorage } from "./store/storage.ts";
import { listSandboxDays } from "./store/usage-rows.ts";
import { now, sumRuns } from "./store/use.ts";

export type { Capped } from "./store/caps.ts";
export type { Database };

/** Every query of the billing service; only the files of `store/` know SQL. */
export type Store = ReturnType<typeof createStore>;

export function createStore(database: Database) {
  return {
    now: bind(database, now),
    sumRuns: bind(database, sumRuns),
    sumStorage: bind(database, sumStorage),
    listSandboxDays: bind(database, listSandboxDays),
    listVolumeDays: bind(database, listVolumeDays),
    findStoredBytes: bind(database, findStoredBytes),
    findAccount: bind(database, findAccount),
    listPlans: bind(database, listPlans),
    hasPlan: bind(database, hasPlan),
    setPlan: bind(database, setPlan),
    assignPlan: bind(database, assignPlan),
    setOverrides: bind(database, setOverrides),
    rollUp: bind(database, rollUp),
    meteringLag: bind(database, meteringLag),
    listCapped: bind(database, listCapped),
    insertExhaustion: bind(database, insertExhaustion),
    clearExhaustion: bind(database, clearExhaustion),
    listRunning: bind(database, listRunning),
  };
}
