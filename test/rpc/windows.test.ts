import { once } from "node:events";
import { connect, createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { createClient } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { Health } from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { startServer, TOKEN } from "./support.ts";

const MIB = 1024 * 1024;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe("how much may be under way before a round trip is waited for", () => {
  test("to the RPC port", async () => {
    const { port, close } = await startServer();
    const session = connect(`http://127.0.0.1:${port}`);
    cleanups.push(close, () => session.destroy());
    await once(session, "remoteSettings");
    expect(session.remoteSettings.initialWindowSize).toBe(MIB);
    await expect.poll(() => session.state.remoteWindowSize).toBe(8 * MIB);
  });

  test("from it: less of one stream, which is held where nobody reads it", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    server.on("stream", (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/proto" });
      stream.end();
    });
    await once(server, "listening");
    const accepted = once(server, "session") as Promise<[ServerHttp2Session]>;
    const { port } = server.address() as AddressInfo;
    const transport = createRemoteTransport({ baseUrl: `http://127.0.0.1:${port}`, token: TOKEN });
    cleanups.push(() => server.close(), transport.close);
    await createClient(Health, transport).check({});
    const [session] = await accepted;
    expect(session.remoteSettings.initialWindowSize).toBe(MIB / 4);
    await expect.poll(() => session.state.remoteWindowSize).toBe(8 * MIB);
  });
});
