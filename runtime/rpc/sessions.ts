import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager } from "@connectrpc/connect-node";
import type { WatchedTls } from "../tls/watched.ts";
import { markUnprocessed } from "./unprocessed.ts";
import { widen } from "./windows.ts";

/** What a stream that nobody reads holds in memory; Node's 64 KiB would make files wait for a round trip each time. */
const STREAM_WINDOW = 256 * 1024;

/**
 * connect-node 2.2.0 takes its listener off a session that a ping found dead when the next call comes before that
 * session has said so. With nobody listening, the error would end the process.
 */
export class Sessions extends Http2SessionManager {
  readonly #known = new WeakSet<ClientHttp2Session>();

  /** @param tls what each connection presents, and whom it trusts; undefined: whom Node trusts */
  constructor(
    baseUrl: string,
    pings: ConstructorParameters<typeof Http2SessionManager>[1],
    tls?: Pick<WatchedTls, "current">,
  ) {
    const secure = new URL(baseUrl).protocol === "https:";
    const createConnection = tls && secure ? (url: URL) => connectTls(url, tls) : undefined;
    super(baseUrl, pings, {
      settings: { initialWindowSize: STREAM_WINDOW },
      ...(createConnection && { createConnection }),
    });
  }

  override async request(
    ...args: Parameters<Http2SessionManager["request"]>
  ): Promise<ClientHttp2Stream> {
    const stream = await super.request(...args).catch((error: unknown) => {
      throw notSent(error);
    });
    noteRefusal(stream);
    // A stream that a client opened belongs to a client's session.
    const session = stream.session as ClientHttp2Session | undefined;
    if (session && !this.#known.has(session)) {
      this.#known.add(session);
      session.on("error", () => undefined);
      widen(session);
    }
    return stream;
  }
}

function connectTls({ hostname, port }: URL, tls: Pick<WatchedTls, "current">) {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return connect({
    host,
    port: Number(port || 443),
    // Of an address the certificate is checked all the same, but it may not be asked for by one.
    ...(isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ["h2"],
    ...tls.current,
    // Also where NODE_TLS_REJECT_UNAUTHORIZED says otherwise of the process.
    rejectUnauthorized: true,
  });
}

/** There was no connection to send it on. */
function notSent(cause: unknown): ConnectError {
  const { rawMessage } = ConnectError.from(cause);
  return markUnprocessed(
    new ConnectError(rawMessage, Code.Unavailable, undefined, undefined, cause),
  );
}

/**
 * REFUSED_STREAM promises that nothing was done (RFC 9113, 8.7). Node closes with it, too, what a GOAWAY leaves out. A server
 * that has answered before breaks the promise, so it is not believed.
 */
function noteRefusal(stream: ClientHttp2Stream): void {
  let answered = false;
  stream.once("response", () => {
    answered = true;
  });
  stream.once("error", (error: NodeJS.ErrnoException) => {
    // This code is of an error that Node makes for one stream; a connection's is shared by all of its streams.
    const isOwn = error.code === "ERR_HTTP2_STREAM_ERROR";
    if (isOwn && !answered && stream.rstCode === constants.NGHTTP2_REFUSED_STREAM)
      markUnprocessed(error);
  });
}
