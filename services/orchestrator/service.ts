import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { OrchestratorService } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import type { Store } from "./store.ts";

/** Every RPC of orchestrator.v1. */
export function createOrchestratorService(store: Store): ServiceImpl<typeof OrchestratorService> {
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
  };
}
