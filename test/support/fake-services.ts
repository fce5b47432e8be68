import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import type { SandboxKey } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";

export const SANDBOX_ID = "019a7c1e-0000-7000-8000-000000000001";
export const API_KEY_ID = "019a7c1e-0000-7000-8000-0000000000aa";

/** What an unexpected failure of the fake says; no client may ever see it. */
export const SECRET = "connect ECONNREFUSED db.internal:5432";

/**
 * Services without anything behind them: what they do is chosen by the name in the request.
 * `calls` are the contexts of the calls that reached a handler which waits or may fail.
 */
export function createFakeServices() {
  const calls: HandlerContext[] = [];
  const sandbox = fakeSandboxService((context) => calls.push(context));
  return {
    calls,
    routes(router: ConnectRouter) {
      router.service(SandboxService, sandbox);
      router.service(OrganizationService, {
        authenticateKey: (_request, context) => {
          calls.push(context);
          return { orgId: SANDBOX_ID, apiKeyId: API_KEY_ID, apiKeyName: "ci" };
        },
      });
    },
  };
}

function fakeSandboxService(
  record: (context: HandlerContext) => void,
): Partial<ServiceImpl<typeof SandboxService>> {
  return {
    createSandbox({ name, spec }, context) {
      const { orgId } = requireCaller(context);
      if (name === "taken") throw nameTaken(name);
      return { sandbox: { id: SANDBOX_ID, orgId, name, ...(spec && { spec }) } };
    },
    async getSandbox({ key }, context) {
      record(context);
      const { orgId } = requireCaller(context);
      const name = nameOf(key);
      if (name === "missing") throw new ServiceError("SANDBOX_NOT_FOUND", "resource not found");
      if (name === "broken") throw new Error(SECRET);
      if (name === "slow") await aborted(context.signal);
      return { sandbox: { id: SANDBOX_ID, orgId, name } };
    },
    /** `cursor` is how many changes to send before it waits for the end; `broken` fails after one. */
    async *watchSandboxes({ cursor }, context) {
      record(context);
      const count = cursor === "broken" ? 1 : Number(cursor);
      for (let generation = 1; generation <= count; generation++)
        yield { cursor: String(generation), event: { case: "change", value: { generation } } };
      if (cursor === "broken") throw new Error(SECRET);
      await aborted(context.signal);
    },
  };
}

function nameTaken(name: string): ServiceError {
  return new ServiceError("NAME_ALREADY_EXISTS", "'name' already exists", {
    metadata: { field: "name", sandbox_id: SANDBOX_ID },
    faults: [{ field: "name", message: `${name} is taken` }],
  });
}

function nameOf(key: SandboxKey | undefined): string {
  return key?.key.case === "name" ? key.key.value : "by-id";
}

/** Like most waits of a handler: fails with the signal's reason when the call is over. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(signal.reason);
    if (signal.aborted) fail();
    signal.addEventListener("abort", fail);
  });
}
