import type { Http2Session } from "node:http2";

/** How much of all streams of a connection together may be under way. */
const CONNECTION_WINDOW = 8 * 1024 * 1024;

/**
 * Lets a peer send for longer than the 64 KiB after which it would wait for a round trip. It costs no memory: Node takes what
 * comes on a connection at once, and holds each stream back by the stream's own window.
 */
export function widen(session: Http2Session): void {
  session.setLocalWindowSize(CONNECTION_WINDOW);
}
