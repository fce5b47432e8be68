import { bind } from "../../prisma/bind.ts";
import type { Database } from "../../prisma/database.ts";
import { refusal } from "../../prisma/database.ts";
import { analyzeNewTables } from "../../prisma/first-statistics.ts";
import { destroySandbox, renameSandbox, startSandbox, stopSandbox } from "./store/change.ts";
import type { NewSandbox } from "./store/create.ts";
import { Creates } from "./store/creates.ts";
import { findRemembered, isOnRecord, rememberRefusal } from "./store/idempotency.ts";
import { listHolders, listMountedVolumes, listVolumeNames } from "./store/mounted-volumes.ts";
import { findStanding } from "./store/quotas.ts";
import {
  findEngine,
  findHolder,
  findSandbox,
  findSandboxes,
  listExpired,
  listPatchFeatures,
  listSandboxes,
  nextExpiry,
} from "./store/read.ts";
import {
  reportEnded,
  reportPlacement,
  reportRemoved,
  reportRunning,
  reportWorkloadEnded,
} from "./store/report.ts";
import {
  giveUpWrites,
  judgeStorage,
  reportVolumeRemoved,
  reportVolumeUse,
  reserveBytes,
  settleWrite,
} from "./store/volume-use.ts";
import {
  createVolume,
  deleteVolume,
  findHostVolume,
  findVolume,
  isVolumeNameTaken,
  listVolumes,
  updateVolume,
} from "./store/volumes.ts";

export type { Reported } from "./store/report.ts";
export type { Database, NewSandbox };
export { isOnRecord, isVolumeNameTaken };

/** Every query of the sandbox service; only the files of `store/` know SQL. */
export type Store = ReturnType<typeof createStore>;

export function createStore(database: Database) {
  const creates = new Creates(database);
  return {
    create: bind(
      database,
      async function createSandbox(_, ...given: Parameters<Creates["create"]>) {
        return creates.create(...given);
      },
    ),
    start: bind(database, startSandbox),
    stop: bind(database, stopSandbox),
    destroy: bind(database, destroySandbox),
    rename: bind(database, renameSandbox),
    find: bind(database, findSandbox),
    findAll: bind(database, findSandboxes),
    list: bind(database, listSandboxes),
    findHolder: bind(database, findHolder),
    findEngine: bind(database, findEngine),
    findStanding: bind(database, findStanding),
    findRemembered: bind(database, findRemembered),
    rememberRefusal: bind(database, rememberRefusal),
    listPatchFeatures: bind(database, listPatchFeatures),
    listExpired: bind(database, listExpired),
    nextExpiry: bind(database, nextExpiry),
    reportPlacement: bind(database, reportPlacement),
    reportRunning: bind(database, reportRunning),
    reportWorkloadEnded: bind(database, reportWorkloadEnded),
    reportEnded: bind(database, reportEnded),
    reportRemoved: bind(database, reportRemoved),
    createVolume: bind(database, createVolume),
    updateVolume: bind(database, updateVolume),
    deleteVolume: bind(database, deleteVolume),
    findVolume: bind(database, findVolume),
    findHostVolume: bind(database, findHostVolume),
    listVolumes: bind(database, listVolumes),
    listVolumeNames: bind(database, listVolumeNames),
    listMountedVolumes: bind(database, listMountedVolumes),
    listHolders: bind(database, listHolders),
    reserveBytes: bind(database, reserveBytes),
    settleWrite: bind(database, settleWrite),
    giveUpWrites: bind(database, giveUpWrites),
    judgeStorage: bind(database, judgeStorage),
    reportVolumeUse: bind(database, reportVolumeUse),
    reportVolumeRemoved: bind(database, reportVolumeRemoved),
    analyzeNewTables: () => analyzeNewTables(database, "sandbox"),
    /** A hint to orchestrators that there is work; a lost one costs a sweep's delay, nothing else. */
    notify: async () => {
      await database.query("SELECT count(pg_notify('sandgate_work', ''))");
    },
  };
}

/** Which of a sandbox's names is taken, where that is why a statement was refused. */
export function takenField(error: unknown): "name" | "slug" | undefined {
  const constraint = refusal(error)?.constraint;
  if (constraint === "sandboxes_name_key") return "name";
  if (constraint === "sandboxes_slug_key") return "slug";
  return undefined;
}
