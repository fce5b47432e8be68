import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { Health } from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../proto/gen/grpc/reflection/v1/reflection_pb.ts";
import type { Config } from "../../runtime/config.ts";
import { whyOf } from "../../runtime/data-dir.ts";
import { inTime } from "../../runtime/in-time.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { readTls } from "../../runtime/tls/certificate.ts";
import { findToken } from "../operator.ts";
import { isServing } from "../remotes.ts";
import { refusePlain } from "../tls.ts";
import { type Check, fail, ok, type Subject, skip, warn } from "./check.ts";
import { askGateway } from "./gateway.ts";

const LIMIT_MS = 3_000;

/** What listens: the gateway, other roles, Redis. */
export async function askNetwork({ config, server }: Subject): Promise<Check[]> {
  const roles = Object.entries(config.rpc.urls).flatMap(([role, url]) =>
    url === undefined ? [] : [askRpc(config, `${role} role`, url)],
  );
  const rpc = server === undefined ? [] : [askRpc(config, "server", server)];
  return Promise.all([askGateway(config), ...rpc, ...roles, askRedis(config)]);
}

async function askRpc(config: Config, name: string, url: string): Promise<Check> {
  const mend = `start it, or set its URL (${url}) to where it is`;
  try {
    refusePlain(config, "it", url);
    const token = await findToken(config);
    const tls = config.rpc.tls && { current: await readTls(config.rpc.tls) };
    const transport = createRemoteTransport({ baseUrl: url, token, tls });
    try {
      const serves = await inTime(isServing({ health: createClient(Health, transport) }), LIMIT_MS);
      if (!serves)
        return fail(
          name,
          `${url} answers, but cannot serve`,
          "see its log: the database may be away",
        );
      if (await inTime(isTrusted(transport), LIMIT_MS))
        return ok(name, `${url} answers and can serve`);
      return fail(
        name,
        `${url} does not take this service token${tls ? " or this certificate" : ""}`,
        `set SERVICE_TOKEN as it has it${tls ? ", or a certificate of its TLS_CA" : ""}`,
      );
    } finally {
      transport.close();
    }
  } catch (error) {
    return fail(name, `${url} does not answer: ${whyOf(error)}`, mend);
  }
}

/** Whether we are trusted: health is told to anybody, this is not. */
async function isTrusted(transport: Transport): Promise<boolean> {
  const listServices = { messageRequest: { case: "listServices" as const, value: "" } };
  async function* questions() {
    yield listServices;
  }
  try {
    const reflection = createClient(ServerReflection, transport);
    for await (const _ of reflection.serverReflectionInfo(questions())) return true;
    return true;
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) return false;
    throw error;
  }
}

async function askRedis({ gateway }: Config): Promise<Check> {
  const name = "redis";
  const url = gateway.rateLimit.redisUrl;
  if (url === undefined) return skip(name, "REDIS_URL is not set: each gateway counts for itself");
  // Only who has it needs it.
  const redis = await import("@redis/client");
  const client = redis.createClient({
    url,
    socket: { connectTimeout: LIMIT_MS, reconnectStrategy: false },
  });
  client.on("error", () => {});
  try {
    await inTime(
      client.connect().then(() => client.ping()),
      LIMIT_MS,
    );
    return ok(name, "it answers PING");
  } catch (error) {
    const seen = `it does not answer: ${whyOf(error)}; requests pass unlimited`;
    return warn(name, seen, "start it, or correct REDIS_URL");
  } finally {
    client.destroy();
  }
}
