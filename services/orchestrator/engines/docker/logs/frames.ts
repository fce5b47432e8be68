/** A piece of a container's output as the daemon sends it. */
export interface Frame {
  /** `daemon`: not output, but what the daemon has to say about reading it. */
  stream: "stdout" | "stderr" | "daemon";
  payload: Buffer;
}

const HEAD = 8;
const STREAMS = { 1: "stdout", 2: "stderr", 3: "daemon" } as const;
/** Far above what the daemon sends, which cuts lines at 16 KiB: more is not a frame. */
const MAX_PAYLOAD = 64 * 1024 * 1024;

/**
 * Takes the multiplexed stream of a container without a terminal apart: a byte for the stream, three of nothing, four for the
 * length, big-endian, then the payload. Each frame has been one write of the daemon's.
 * @throws Error where the bytes are no frames, and whatever the stream throws
 */
export async function* frames(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
): AsyncGenerator<Frame> {
  let rest: Buffer[] = [];
  let held = 0;
  let wanted = HEAD;
  for await (const bytes of source) {
    rest.push(bytes);
    held += bytes.length;
    if (held < wanted) continue;
    const all = Buffer.concat(rest);
    let at = 0;
    for (; all.length - at >= HEAD; at += wanted) {
      wanted = HEAD + lengthOf(all, at);
      if (all.length - at < wanted) break;
      yield { stream: streamOf(all, at), payload: all.subarray(at + HEAD, at + wanted) };
    }
    rest = [all.subarray(at)];
    held = all.length - at;
    if (held < HEAD) wanted = HEAD;
  }
  if (held > 0) throw new Error("Docker's log broke off inside a frame");
}

function lengthOf(bytes: Buffer, at: number): number {
  const length = bytes.readUInt32BE(at + 4);
  if (length > MAX_PAYLOAD) throw new Error("Docker's log is not what was expected");
  return length;
}

function streamOf(bytes: Buffer, at: number): Frame["stream"] {
  const stream = STREAMS[bytes[at] as keyof typeof STREAMS];
  if (!stream) throw new Error("Docker's log is not what was expected");
  return stream;
}
