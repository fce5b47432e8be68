import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { trustedKey } from "./trust.ts";

/** How often a watched status is looked at, in milliseconds. */
const WATCH_INTERVAL_MS = 1_000;

/**
 * grpc.health.v1. All services of a process are ready together; the empty name is the process, and all that a caller may
 * check who has no credentials. A process that is about to end says no to who looks for one to connect to, which is what a
 * balancer asks by the empty name; its services still answer those who are connected.
 * @param serviceNames full names of the services that are served
 * @param ready whether calls can be answered now; a failure counts as no
 * @param leaving whether the process is about to end
 */
export function healthService(
  serviceNames: readonly string[],
  ready: () => boolean | Promise<boolean>,
  leaving: () => boolean,
): ServiceImpl<typeof Health> {
  const names = new Set(["", ...serviceNames]);
  const statusOf = async (service: string) => {
    const serves = (await isReady(ready)) && !(service === "" && leaving());
    return serves ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  };

  return {
    async check({ service }, { values }) {
      if (service !== "" && !values.get(trustedKey))
        throw new ConnectError("unauthenticated", Code.Unauthenticated);
      if (!names.has(service)) throw new ConnectError("unknown service", Code.NotFound);
      return { status: await statusOf(service) };
    },
    async list() {
      const statuses = [...names].map(async (name) => [name, { status: await statusOf(name) }]);
      return { statuses: Object.fromEntries(await Promise.all(statuses)) };
    },
    async *watch({ service }, { signal }) {
      let last: ServingStatus | undefined;
      while (true) {
        const status = names.has(service) ? await statusOf(service) : ServingStatus.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await delay(WATCH_INTERVAL_MS, undefined, { signal });
      }
    },
  };
}

async function isReady(ready: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await ready();
  } catch {
    return false;
  }
}
