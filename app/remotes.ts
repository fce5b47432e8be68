import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../proto/gen/grpc/health/v1/health_pb.ts";
import type { Config } from "../runtime/env.ts";
import { StartupError } from "../runtime/errors.ts";
import { countClientCalls } from "../runtime/metrics/rpc.ts";
import { createRemoteTransport } from "../runtime/rpc/client.ts";
import type { RoleOptions } from "./roles.ts";
import { provideToken } from "./rpc.ts";

type Name = keyof Config["rpc"]["urls"];

/** A service in another process. */
export interface Remote<S extends DescService> {
  client: Client<S>;
  /** Another service that the same process serves. */
  beside<T extends DescService>(service: T): Client<T>;
  health: Client<typeof Health>;
}

const HEALTH_TIMEOUT_MS = 2_000;

/**
 * Connects to a service by the URL of the settings; it need not be there yet.
 * @throws StartupError where there is no URL
 */
export async function provideRemote<S extends DescService>(
  { config, lifecycle, metrics }: RoleOptions,
  name: Name,
  service: S,
): Promise<Remote<S>> {
  requireUrls(config, [name]);
  const baseUrl = config.rpc.urls[name] ?? "";
  const token = await provideToken(config);
  const transport = await lifecycle.start(`connection to the ${name} service`, {
    start: () =>
      createRemoteTransport({ baseUrl, token, interceptors: [countClientCalls(metrics)] }),
    end: (connected) => connected.close(),
  });
  return {
    client: createClient(service, transport),
    beside: (other) => createClient(other, transport),
    health: createClient(Health, transport),
  };
}

/** @throws StartupError naming every variable that is missing */
export function requireUrls({ rpc }: Config, names: readonly Name[]): void {
  const missing = names.filter((name) => rpc.urls[name] === undefined);
  if (missing.length === 0) return;
  const variables = missing.map((name) => `${name.toUpperCase()}_URL`).join(", ");
  throw new StartupError(
    `This role needs ${variables}: where the other services are, such as http://127.0.0.1:9091`,
  );
}

/** What tells whether a service can serve. */
export type Served = Pick<Remote<DescService>, "health">;

/** Whether a service answers, and says that it can serve. */
export async function isServing({ health }: Served): Promise<boolean> {
  const { status } = await health.check({}, { timeoutMs: HEALTH_TIMEOUT_MS });
  return status === ServingStatus.SERVING;
}
