import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { OrchestratorService } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { type LogsContext, readLogs } from "./domain/read-logs.ts";
import { logEventToMessage, logsQueryFromMessage } from "./messages.ts";
import type { Store } from "./store.ts";

/** Every RPC of orchestrator.v1. */
export function createOrchestratorService(
  store: Store,
  logs: LogsContext,
): ServiceImpl<typeof OrchestratorService> {
  return {
    listEngines: async () => ({
      engines: (await store.listEngines()).map(
        ({ name, alive, lastSeenAt, features, capacity }) => ({
          name,
          alive,
          lastSeenAt: timestampFromDate(lastSeenAt),
          features,
          capacity: { vcpus: capacity.vcpus, memoryMib: BigInt(capacity.memoryMib) },
        }),
      ),
    }),

    async *readLogs(request, call: HandlerContext) {
      const query = logsQueryFromMessage(request);
      for await (const event of readLogs(logs, requireCaller(call), query, call.signal))
        yield logEventToMessage(event);
    },
  };
}
