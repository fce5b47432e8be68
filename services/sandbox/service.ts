import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { given } from "../../runtime/rpc/given.ts";
import type { SandboxContext } from "./context.ts";
import * as change from "./domain/change-sandbox.ts";
import { createSandbox } from "./domain/create-sandbox.ts";
import type { Answered } from "./domain/idempotency.ts";
import { listSandboxes } from "./domain/list-sandboxes.ts";
import { report } from "./domain/report.ts";
import * as read from "./messages.ts";

/** Every RPC of sandbox.v1: read the message, call the verb, write the message. */
export function createSandboxService(ctx: SandboxContext): ServiceImpl<typeof SandboxService> {
  return {
    createSandbox: async (request, call) =>
      answer(await createSandbox(ctx, requireCaller(call), read.createFromMessage(request))),

    getSandbox: async (request, call) =>
      answer(await change.getSandbox(ctx, requireCaller(call), read.keyFromMessage(request.key))),

    batchGetSandboxes: async (request, call) => {
      const found = await ctx.store.findAll(requireCaller(call).orgId, request);
      return { sandboxes: found.map(read.sandboxToMessage) };
    },

    listSandboxes: async (request, call) => {
      const page = await listSandboxes(ctx, requireCaller(call), read.listFromMessage(request));
      const sandboxes = page.rows.map(read.sandboxToMessage);
      return { sandboxes, ...given("nextPageToken", page.nextCursor) };
    },

    renameSandbox: async (request, call) => {
      const { key, name = null, slug = null } = request;
      const to = { name, slug };
      return answer(
        await change.renameSandbox(ctx, requireCaller(call), read.keyFromMessage(key), to),
      );
    },

    startSandbox: async (request, call) =>
      answer(await change.startSandbox(ctx, requireCaller(call), read.keyFromMessage(request.key))),

    stopSandbox: async (request, call) =>
      answer(await change.stopSandbox(ctx, requireCaller(call), read.keyFromMessage(request.key))),

    destroySandbox: async (request, call) => {
      const key = read.keyFromMessage(request.key);
      const gone = await change.destroySandbox(ctx, requireCaller(call), key);
      return { id: gone.id, name: gone.name, ...read.replayToMessage(gone) };
    },

    async *watchSandboxes(request, call: HandlerContext) {
      for await (const watched of ctx.changes.watch(request.cursor, call.signal))
        yield read.watchedToMessage(watched);
    },

    report: async (request) => {
      const { sandboxId, generation } = request;
      const observation = read.observationFromMessage(request);
      const lease = read.leaseFromMessage(request);
      return { applied: await report(ctx, sandboxId, generation, observation, lease) };
    },
  };
}

function answer(sandbox: Answered) {
  return { sandbox: read.sandboxToMessage(sandbox), ...read.replayToMessage(sandbox) };
}
