import { bind } from "../../prisma/bind.ts";
import type { Database } from "../../prisma/database.ts";
import { countQueue, countSandboxes, oldestMeasurement } from "./store/census.ts";
import { holdIntent, intend, settleIntent, withdrawIntent } from "./store/intents.ts";
import {
  findOther,
  holdLease,
  installationId,
  lastObserved,
  listEngines,
  recordObserved,
  releaseLease,
} from "./store/lease.ts";
import { findLatestRun, listRunStates } from "./store/logs.ts";
import { isOpen, listBelieved, listOpen, listOpenOf, listUnknown } from "./store/open.ts";
import { listExpired, listPlaced, listQueue, sumPlaced } from "./store/queue.ts";
import {
  claimVolumesMark,
  findVolume,
  listChangedOf,
  listDeletedVolumes,
  listToMeasure,
  noteChanges,
  noteMounted,
  noteMountsOf,
  readClock,
  readVolumesMark,
} from "./store/volumes.ts";
import { glance, listDestroyed, listEnds, listUnwanted, readStarts } from "./store/work.ts";

export type { RunState } from "./store/logs.ts";
export type { OpenRun } from "./store/open.ts";
export type { QueuedRun } from "./store/queue.ts";
export type { FoundVolume } from "./store/volumes.ts";
export type { EndingRun, Glance, StartingRun } from "./store/work.ts";
export type { Database };

/** Every query of the orchestrator; only the files of `store/` know SQL. It writes leases, the installation and notes of its own. */
export type Store = ReturnType<typeof createStore>;

export function createStore(database: Database) {
  return {
    holdLease: bind(database, holdLease),
    findOther: bind(database, findOther),
    releaseLease: bind(database, releaseLease),
    listEngines: bind(database, listEngines),
    installationId: bind(database, installationId),
    lastObserved: bind(database, lastObserved),
    recordObserved: bind(database, recordObserved),
    glance: bind(database, glance),
    listEnds: bind(database, listEnds),
    readStarts: bind(database, readStarts),
    listDestroyed: bind(database, listDestroyed),
    listUnwanted: bind(database, listUnwanted),
    listQueue: bind(database, listQueue),
    listPlaced: bind(database, listPlaced),
    listExpired: bind(database, listExpired),
    sumPlaced: bind(database, sumPlaced),
    listOpen: bind(database, listOpen),
    listOpenOf: bind(database, listOpenOf),
    isOpen: bind(database, isOpen),
    listUnknown: bind(database, listUnknown),
    listBelieved: bind(database, listBelieved),
    findLatestRun: bind(database, findLatestRun),
    listRunStates: bind(database, listRunStates),
    findVolume: bind(database, findVolume),
    noteChanges: bind(database, noteChanges),
    noteMounted: bind(database, noteMounted),
    noteMountsOf: bind(database, noteMountsOf),
    listToMeasure: bind(database, listToMeasure),
    listChangedOf: bind(database, listChangedOf),
    listDeletedVolumes: bind(database, listDeletedVolumes),
    readClock: bind(database, readClock),
    readVolumesMark: bind(database, readVolumesMark),
    claimVolumesMark: bind(database, claimVolumesMark),
    intend: bind(database, intend),
    holdIntent: bind(database, holdIntent),
    settleIntent: bind(database, settleIntent),
    withdrawIntent: bind(database, withdrawIntent),
    countQueue: bind(database, countQueue),
    countSandboxes: bind(database, countSandboxes),
    oldestMeasurement: bind(database, oldestMeasurement),
  };
}
