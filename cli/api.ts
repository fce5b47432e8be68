import { randomUUID } from "node:crypto";
import { type CallOptions, createContextValues } from "@connectrpc/connect";
import type { OperatorClients, OperatorOptions } from "../app/operator.ts";
import type { Organization } from "../proto/gen/organization/v1/organization_service_pb.ts";
import { OPERATOR } from "../runtime/caller.ts";
import { ServiceError } from "../runtime/errors.ts";
import { actorKey, callerKey } from "../runtime/rpc/context.ts";
import { toConnectError } from "../runtime/rpc/errors.ts";
import type { GlobalOptions } from "./runner.ts";

/** What commands call. */
export interface Api extends OperatorClients {
  /** Call options of an operator on behalf of an organization, by its id. */
  as(orgId: string): CallOptions;
  /** Of an operator on behalf of none. */
  operator: CallOptions;
  /**
   * The organization that a slug or an id names.
   * @throws ConnectError (ORG_NOT_FOUND)
   */
  find(slugOrId: string): Promise<Organization>;
}

const TIMEOUT_MS = 30_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Connects as the options say: over RPC, or in process on the database. */
export async function openApi(
  options: OperatorOptions,
  { server, billingServer }: GlobalOptions,
): Promise<Api> {
  // Half of what a command line takes to start, which help need not.
  const { openInProcess, openRemote } = await import("../app/operator.ts");
  const clients =
    server === undefined
      ? await openInProcess(options)
      : await openRemote({ ...options, url: server, billingUrl: billingServer });
  return { ...clients, as, operator, find: (slugOrId) => find(clients, slugOrId) };
}

const operator: CallOptions = {
  contextValues: createContextValues().set(actorKey, OPERATOR),
  timeoutMs: TIMEOUT_MS,
};

function as(orgId: string): CallOptions {
  const caller = { orgId, actor: OPERATOR, requestId: randomUUID() };
  return { contextValues: createContextValues().set(callerKey, caller), timeoutMs: TIMEOUT_MS };
}

async function find({ organizations }: OperatorClients, slugOrId: string): Promise<Organization> {
  // A slug may look like an id, so both are asked for.
  const { organizations: all } = await organizations.listOrganizations({}, operator);
  const id = UUID.test(slugOrId) ? slugOrId.toLowerCase() : undefined;
  const found = all.find((one) => one.id === id) ?? all.find(({ slug }) => slug === slugOrId);
  if (found) return found;
  throw toConnectError(new ServiceError("ORG_NOT_FOUND", `there is no organization '${slugOrId}'`));
}
