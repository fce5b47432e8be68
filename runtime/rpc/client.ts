import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { refuseSpent } from "./call-scope.ts";
import { writeCaller } from "./caller-headers.ts";
import { callerKey } from "./context.ts";

export interface RemoteOptions {
  /** Such as `http://127.0.0.1:9090`. */
  baseUrl: string;
  /** The service token. */
  token: string;
  /** The client's, outermost first. */
  interceptors?: readonly Interceptor[];
}

export interface RemoteTransport extends Transport {
  /** Closes the connection, and with it what is still open on it. */
  close(): void;
}

/** A transport to another process: Connect over one lasting HTTP/2 connection, binary, not compressed. */
export function createRemoteTransport(options: RemoteOptions): RemoteTransport {
  const { baseUrl, token, interceptors = [] } = options;
  // Not `pingIdleConnection`: connect-node 2.2.0 then pings sessions that it has destroyed, which
  // throws from a timer. An idle connection is checked by a ping before its next call anyway.
  const sessionManager = new Http2SessionManager(baseUrl, { pingIntervalMs: 30_000 });
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "2",
    sessionManager,
    acceptCompression: [],
    interceptors: [...interceptors, identify(token)],
  });
  return {
    async unary(method, signal, timeoutMs, ...call) {
      refuseSpent(timeoutMs);
      return transport.unary(method, signal, timeoutMs, ...call);
    },
    async stream(method, signal, timeoutMs, ...call) {
      refuseSpent(timeoutMs);
      return transport.stream(method, signal, timeoutMs, ...call);
    },
    close: () => sessionManager.abort(),
  };
}

/** Says who calls: this process by the token, and on whose behalf by the caller's headers. */
function identify(token: string): Interceptor {
  return (next) => (req) => {
    req.header.set("authorization", `Bearer ${token}`);
    const caller = req.contextValues.get(callerKey);
    if (caller) writeCaller(req.header, caller);
    return next(req);
  };
}
