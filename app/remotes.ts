import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../proto/gen/grpc/health/v1/health_pb.ts";
import type { Config } from "../runtime/config.ts";
import { StartupError } from "../runtime/errors.ts";
import { countClientCalls } from "../runtime/metrics/rpc.ts";
import { createRemoteTransport } from "../runtime/rpc/client.ts";
import type { GuardOptions } from "../runtime/rpc/guard.ts";
import { traceClientCall } from "../runtime/tracing/rpc.ts";
import { exposeRemote } from "./metrics.ts";
import type { RoleOptions } from "./roles.ts";
import { provideToken } from "./rpc.ts";
import { provideTls, refusePlain } from "./tls.ts";

type Name = keyof Config["rpc"]["urls"];

/** What tells whether a service can serve. */
export interface Served {
  health: Client<typeof Health>;
  /** The service's full name. */
  typeName?: string;
}

/** A service in another process. */
export interface Remote<S extends DescService> extends Served {
  client: Client<S>;
  /** Another service that the same process serves. */
  beside<T extends DescService>(service: T): Client<T>;
}

const HEALTH_TIMEOUT_MS = 2_000;

/**
 * Connects to a service by the URL of the settings; it need not be there yet.
 * @throws StartupError where there is no URL, or one without the TLS that is set up
 */
export async function provideRemote<S extends DescService>(
  options: RoleOptions,
  name: Name,
  service: S,
): Promise<Remote<S>> {
  const { config, lifecycle, metrics } = options;
  requireUrls(config, [name]);
  const baseUrl = config.rpc.urls[name] ?? "";
  const tls = await provideTls(options);
  const token = await provideToken(config);
  const transport = await lifecycle.start(`connection to the ${name} service`, {
    start: () =>
      createRemoteTransport({
        baseUrl,
        token,
        tls,
        interceptors: [traceClientCall, countClientCalls(metrics)],
        guard: guardOf(name, options),
      }),
    end: (connected) => connected.close(),
  });
  exposeRemote(metrics, name, transport.numbers);
  return {
    client: createClient(service, transport),
    beside: (other) => createClient(other, transport),
    health: createClient(Health, transport),
    typeName: service.typeName,
  };
}

function guardOf(name: Name, { config, log }: RoleOptions): GuardOptions {
  const onChange = (open: boolean) => {
    if (open) log.warn(`the ${name} service does not answer: calls to it fail at once`);
    else log.info(`the ${name} service answers again`);
  };
  return { callsMax: config.rpc.callsMax, onChange };
}

/** @throws StartupError naming every variable that is missing, or that does without TLS */
export function requireUrls(config: Config, names: readonly Name[]): void {
  const missing = names.filter((name) => config.rpc.urls[name] === undefined);
  for (const name of names) refusePlain(config, variableOf(name), config.rpc.urls[name]);
  if (missing.length === 0) return;
  const variables = missing.map(variableOf).join(", ");
  throw new StartupError(
    `This role needs ${variables}: where the other services are, such as http://127.0.0.1:9091`,
  );
}

function variableOf(name: Name): string {
  return `${name.toUpperCase()}_URL`;
}

/** Whether a service answers, and says that it can serve; without its name, whether its process does and is to go on. */
export async function isServing({ health, typeName = "" }: Served): Promise<boolean> {
  const question = { service: typeName };
  const { status } = await health.check(question, { timeoutMs: HEALTH_TIMEOUT_MS });
  return status === ServingStatus.SERVING;
}
