import { bind } from "../../prisma/bind.ts";
import type { Database } from "../../prisma/database.ts";
import { analyzeNewTables } from "../../prisma/first-statistics.ts";
import { createFirstOrganization, hasOrganizations } from "./store/bootstrap.ts";
import { findEvent, listEvents } from "./store/events.ts";
import { keepAnswer } from "./store/idempotency.ts";
import { recordKeyUse } from "./store/key-use.ts";
import * as keys from "./store/keys.ts";
import { addMember, listMembers, removeMember } from "./store/members.ts";
import * as organizations from "./store/organizations.ts";
import { deleteExpiredIdempotency, deleteOldEvents } from "./store/retention.ts";

export type { Database };

/** Every query of the organization service; only the files of `store/` know SQL. */
export type Store = ReturnType<typeof createStore>;

export function createStore(database: Database) {
  return {
    hasOrganizations: bind(database, hasOrganizations),
    createFirstOrganization: bind(database, createFirstOrganization),
    createOrganization: bind(database, organizations.createOrganization),
    findOrganization: bind(database, organizations.findOrganization),
    listOrganizations: bind(database, organizations.listOrganizations),
    suspendOrganization: bind(database, organizations.suspendOrganization),
    resumeOrganization: bind(database, organizations.resumeOrganization),
    addMember: bind(database, addMember),
    listMembers: bind(database, listMembers),
    removeMember: bind(database, removeMember),
    createKey: bind(database, keys.createKey),
    findKey: bind(database, keys.findKey),
    findKeyHolder: bind(database, keys.findKeyHolder),
    listKeys: bind(database, keys.listKeys),
    recordKeyUse: bind(database, recordKeyUse),
    revokeKey: bind(database, keys.revokeKey),
    rotateKey: bind(database, keys.rotateKey),
    findEvent: bind(database, findEvent),
    listEvents: bind(database, listEvents),
    keepAnswer: bind(database, keepAnswer),
    deleteExpiredIdempotency: bind(database, deleteExpiredIdempotency),
    deleteOldEvents: bind(database, deleteOldEvents),
    analyzeNewTables: () => analyzeNewTables(database, "organization"),
  };
}
