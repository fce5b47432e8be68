import { createHmac } from "node:crypto";
import {
  type CallOptions,
  type Client,
  createClient,
  createContextValues,
} from "@connectrpc/connect";
import { expect } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import type { OrganizationContext } from "../../../services/organization/context.ts";
import { createKeyWatch } from "../../../services/organization/key-watch.ts";
import { createOrganizationService } from "../../../services/organization/service.ts";
import { listenForKeys } from "../../../services/organization/store/listen.ts";
import { createStore } from "../../../services/organization/store.ts";
import { createTestDatabase } from "../../support/database.ts";

export const ACTOR: Actor = { kind: "system", code: "test", label: "Test" };

/** The service on a database of its own, behind its client in memory. */
export interface Bench {
  ctx: OrganizationContext;
  client: Client<typeof OrganizationService>;
  database: Database;
  url: string;
  /** What was told of lost connections. */
  errors: unknown[];
  /** A new organization, and the options of calls for it. */
  organization(): Promise<{ orgId: string; as: CallOptions }>;
  close(): Promise<void>;
}

let made = 0;

export async function createBench({ throughUrl = (url: string) => url } = {}): Promise<Bench> {
  const { url, close } = await createTestDatabase();
  const database = openDatabase(url, { poolSize: 20 });
  const errors: unknown[] = [];
  const ctx: OrganizationContext = {
    store: createStore(database),
    sign,
    keyWatch: createKeyWatch(
      (ears) => listenForKeys(throughUrl(url), ears),
      (error) => errors.push(error),
    ),
  };
  const client = clientOf(ctx);
  return {
    ctx,
    client,
    database,
    url,
    errors,
    organization: async () => {
      made += 1;
      const { organization } = await client.createOrganization({
        name: `Organization ${made}`,
        slug: `organization-${made}`,
      });
      const orgId = organization?.id ?? "";
      return { orgId, as: callAs(orgId) };
    },
    close: async () => {
      await ctx.keyWatch.stop();
      await database.close();
      await close();
    },
  };
}

export function sign(data: string): Uint8Array {
  return createHmac("sha256", "test").update(data).digest();
}

export function clientOf(ctx: OrganizationContext): Client<typeof OrganizationService> {
  const routes = (router: Parameters<Parameters<typeof createInProcessTransport>[0]>[0]) =>
    router.service(OrganizationService, createOrganizationService(ctx));
  const log = { error: (...args: unknown[]) => expect.fail(JSON.stringify(args)) };
  return createClient(OrganizationService, createInProcessTransport(routes, { log, freeze: true }));
}

/** Options of a call for an organization. */
export function callAs(orgId: string, actor: Actor = ACTOR): CallOptions {
  return {
    contextValues: createContextValues().set(callerKey, { orgId, actor, requestId: "test" }),
  };
}

/** The refusal that a call fails with; undefined where it does not. */
export function refusalOf(call: Promise<unknown>) {
  return call.then(
    () => undefined,
    (error: unknown) => {
      const refused = fromConnectError(error);
      if (!refused) throw error;
      return refused;
    },
  );
}

export interface StoredEvent {
  event_type: string;
  category: string;
  actor: unknown;
  payload: Record<string, unknown>;
}

/** What the audit log has of an organization, oldest first, without how it was made. */
export function eventsOf(database: Database, orgId: string): Promise<StoredEvent[]> {
  return database.query(
    `SELECT event_type, category, actor, payload FROM organization.events
     WHERE org_id = $1::uuid AND event_type <> 'org_created' ORDER BY timestamp, id`,
    orgId,
  );
}
