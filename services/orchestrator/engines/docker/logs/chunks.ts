import { TextDecoder } from "node:util";
import type { LogChunk, LogPosition, LogSource } from "../../engine.ts";
import { endOfWorkloadAt } from "../supervisor.ts";
import type { Frame } from "./frames.ts";
import { readTime } from "./timestamps.ts";

/** Frames that are longer cannot end in that line alone. */
const LINE_MAX = 200;
/** Of a longer line the daemon makes pieces of this many bytes. */
const PIECE_BYTES = 16 * 1024;
const LINE_BREAK = 0x0a;

interface StreamState {
  decoder: TextDecoder;
  /** Offset and time of the last piece seen, delivered or not; they go back where the daemon repeats itself. */
  offset: bigint;
  time: bigint;
  /** That was a piece of a line which goes on. */
  isOpen: boolean;
}

/**
 * Makes chunks of one reading's frames and leaves out those that were delivered before. A piece's offset is its time in
 * nanoseconds; those of one time, as the pieces of a long line are, follow each other by one. A reading must begin
 * before the position by more than any line has pieces: then offsets come out the same again, and a character that
 * the daemon cut in two is whole again, though its first half was delivered with the piece before. Frames that are no newer
 * than those before them in their stream are taken for repeats, which a daemon that rotates its files may send; so what is
 * written after the host's clock was set back is not seen until it has caught up.
 */
export class ChunkReader {
  readonly #after: LogPosition;
  readonly #streams = { stdout: newStream(), stderr: newStream() };

  constructor(after: LogPosition) {
    this.#after = { ...after };
  }

  /** Whether a frame is newer than all that were read. */
  isNews(stream: keyof LogPosition, { payload }: Frame): boolean {
    return readTime(payload).time > this.#streams[stream].time;
  }

  /** The chunks of one frame: none, one, or two where the supervisor's line follows an unfinished one. */
  read(stream: keyof LogPosition, { payload }: Frame): LogChunk[] {
    const { time, begin } = readTime(payload);
    const before = this.#streams[stream];
    // Only the pieces of one line share a time.
    const isRepeat = time < before.time || (time === before.time && !before.isOpen);
    if (isRepeat) this.#streams[stream] = newStream();
    const state = this.#streams[stream];
    const bytes = payload.subarray(begin);
    const text = state.decoder.decode(bytes, { stream: true });
    const isBroken = bytes.at(-1) === LINE_BREAK;
    // The daemon's driver `local` drops the line break of a line that came in pieces.
    const isLast = state.isOpen && state.time === time && bytes.length < PIECE_BYTES && !isBroken;
    state.time = time;
    state.isOpen = bytes.length === PIECE_BYTES && !isBroken;
    return this.#pieces(stream, time, isLast ? `${text}\n` : text);
  }

  /** What is left when nothing follows: the beginning of a character that never came. */
  end(): LogChunk[] {
    return (["stdout", "stderr"] as const).flatMap((stream) => {
      const { decoder, time } = this.#streams[stream];
      return this.#pieces(stream, time, decoder.decode());
    });
  }

  #pieces(stream: keyof LogPosition, time: bigint, text: string): LogChunk[] {
    const own = stream === "stderr" ? endOfWorkload(text) : text.length;
    return [
      ...this.#piece(stream, stream, time, text.slice(0, own)),
      ...this.#piece("system", stream, time, text.slice(own)),
    ];
  }

  #piece(source: LogSource, stream: keyof LogPosition, time: bigint, text: string): LogChunk[] {
    if (text === "") return [];
    const state = this.#streams[stream];
    const offset = time > state.offset ? time : state.offset + 1n;
    state.offset = offset;
    if (offset <= this.#after[stream]) return [];
    this.#after[stream] = offset;
    return [{ source, stream, offset, time, text }];
  }
}

function endOfWorkload(text: string): number {
  const tail = Math.max(0, text.length - LINE_MAX);
  const at = endOfWorkloadAt(text.slice(tail));
  return at < 0 ? text.length : tail + at;
}

function newStream(): StreamState {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return { decoder, offset: 0n, time: 0n, isOpen: false };
}
