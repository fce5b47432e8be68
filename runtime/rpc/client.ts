import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { WatchedTls } from "../tls/watched.ts";
import { refuseSpent } from "./call-scope.ts";
import { writeActor, writeCaller } from "./caller-headers.ts";
import { asUnavailable, unavailableStream } from "./connection-errors.ts";
import { actorKey, callerKey } from "./context.ts";
import { type GuardOptions, guard, type RemoteNumbers } from "./guard.ts";
import { replay } from "./replay.ts";
import { isRepeatable, retrying } from "./retry.ts";
import { Sessions } from "./sessions.ts";
import { isUnprocessed } from "./unprocessed.ts";

export interface RemoteOptions {
  /** Such as `http://127.0.0.1:9090`. */
  baseUrl: string;
  /** The service token; undefined: `tls` says who calls. */
  token: string | undefined;
  /** What an `https://` connection presents, and whom it trusts; undefined: nothing, and whom Node trusts. */
  tls?: Pick<WatchedTls, "current"> | undefined;
  /** The client's, outermost first; they see every try. */
  interceptors?: readonly Interceptor[];
  /** How often a connection in use is pinged, and how long it has to answer; 5,000 unless set. */
  pingMs?: number;
  /** How much may be under way, and when calls fail at once. */
  guard?: GuardOptions;
}

export interface RemoteTransport extends Transport {
  /** What is under way now. */
  numbers(): RemoteNumbers;
  /** Closes the connection, and with it what is still open on it. */
  close(): void;
}

const PING_MS = 5_000;

/**
 * A transport to another process: Connect over one lasting HTTP/2 connection, binary, not compressed. A process that
 * is gone, or frozen, makes calls fail with Unavailable or at their deadline, and soon at once; calls that are free of side
 * effects or idempotent, or that were surely never processed, are tried again for a short while. Whoever calls later finds
 * the process again by itself.
 */
export function createRemoteTransport(options: RemoteOptions): RemoteTransport {
  const { baseUrl, token, tls, interceptors = [], pingMs = PING_MS } = options;
  // Not `pingIdleConnection`: connect-node 2.2.0 then pings sessions that it has destroyed, which
  // throws from a timer. An idle connection is checked by a ping before its next call anyway.
  const pings = { pingIntervalMs: pingMs, pingTimeoutMs: pingMs };
  const sessionManager = new Sessions(baseUrl, pings, tls);
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "2",
    sessionManager,
    acceptCompression: [],
    interceptors: [...interceptors, identify(token)],
  });
  // The first call finds it warm; one that fails is made anew by the next call.
  void sessionManager.connect();
  const patient: Transport = {
    async unary(method, signal, timeoutMs, ...call) {
      refuseSpent(timeoutMs);
      const mayRepeat = (error: unknown) => isRepeatable(method, error);
      return retrying({ mayRepeat, signal, timeoutMs }, (rest) =>
        transport.unary(method, signal, rest, ...call).catch((error: unknown) => {
          throw asUnavailable(error, signal);
        }),
      );
    },
    async stream(method, signal, timeoutMs, header, input, ...call) {
      refuseSpent(timeoutMs);
      const sent = replay(input);
      const mayRepeat = (error: unknown) => sent.isWhole && isUnprocessed(error);
      const response = await retrying({ mayRepeat, signal, timeoutMs }, (rest) =>
        transport
          .stream(method, signal, rest, header, sent.attempt(), ...call)
          .catch((error: unknown) => {
            throw asUnavailable(error, signal);
          }),
      );
      sent.settle();
      return { ...response, message: unavailableStream(response.message, signal) };
    },
  };
  const guarded = guard(patient, transport, options.guard ?? {});
  return {
    ...guarded.transport,
    numbers: () => guarded.numbers,
    close() {
      guarded.close();
      sessionManager.abort();
    },
  };
}

/** Says who calls: this process by the token, and on whose behalf by the caller's headers. */
function identify(token: string | undefined): Interceptor {
  return (next) => (req) => {
    if (token !== undefined) req.header.set("authorization", `Bearer ${token}`);
    const caller = req.contextValues.get(callerKey);
    const actor = req.contextValues.get(actorKey);
    if (caller) writeCaller(req.header, caller);
    else if (actor) writeActor(req.header, actor);
    return next(req);
  };
}
