import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { Static } from "typebox";
import {
  LogSource,
  type ReadLogsRequestSchema,
  type ReadLogsResponse,
} from "../../../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { invalidRequest } from "../../../errors.ts";
import { nameOf } from "../../values.ts";
import type { LogsQuery, SandboxIdParams } from "../schema/queries.ts";

const SOURCES = {
  stdout: LogSource.STDOUT,
  stderr: LogSource.STDERR,
  output: LogSource.OUTPUT,
  system: LogSource.SYSTEM,
} as const;
const END = "event: end\ndata: {}\n\n";
/** Padded, in the standard alphabet. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** @throws PublicError (invalid_request) on a `Last-Event-ID` that is no event's id */
export function logsMessage(
  { sandbox_id }: Static<typeof SandboxIdParams>,
  { sources }: Static<typeof LogsQuery>,
  lastEventId: string | string[] | undefined,
): MessageInitShape<typeof ReadLogsRequestSchema> {
  const named = sources?.split(",") ?? [];
  const wanted = Object.entries(SOURCES).filter(
    ([name]) => named.includes("all") || named.includes(name),
  );
  return {
    sandboxId: sandbox_id.toLowerCase(),
    sources: wanted.map(([, source]) => source),
    after: cursorOf(lastEventId ?? ""),
  };
}

function cursorOf(id: string | string[]): Uint8Array {
  const [text = "", ...more] = [id].flat();
  const bytes = Buffer.from(text, "base64");
  const isOne = more.length === 0 && BASE64.test(text) && hasWholePairs(bytes);
  if (!isOne)
    throw invalidRequest([
      { field: "headers.last-event-id", message: "is not the id of a log event" },
    ]);
  return bytes;
}

/** One byte counts the pairs of eight-byte numbers behind it. Nothing at all says: from the beginning. */
function hasWholePairs(bytes: Buffer): boolean {
  return bytes.length === 0 || bytes.length === 1 + bytes.readUInt8() * 16;
}

/** The server-sent event of a message; undefined: it has none. */
export function eventOf({ event }: ReadLogsResponse): string | undefined {
  if (event.case === "ended") return END;
  if (event.case !== "entry") return undefined;
  const { cursor, source, time, text } = event.value;
  const id = Buffer.from(cursor.buffer, cursor.byteOffset, cursor.byteLength).toString("base64");
  const data = JSON.stringify({ source: nameOf(SOURCES, source), ts: exactTime(time), text });
  return `id: ${id}\nevent: log\ndata: ${data}\n\n`;
}

/** RFC 3339 in UTC, to the nanosecond. */
function exactTime(time: Timestamp | undefined): string {
  if (!time) throw new Error("the answer lacks a time");
  const seconds = new Date(Number(time.seconds) * 1000).toISOString().slice(0, -".000Z".length);
  return `${seconds}.${String(time.nanos).padStart(9, "0")}Z`;
}
