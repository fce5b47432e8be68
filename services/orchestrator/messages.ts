import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  LogSource as LogSourceMessage,
  type ReadLogsRequest,
  type ReadLogsResponseSchema,
} from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { encodeCursor } from "./domain/log-cursor.ts";
import type { LogsQuery } from "./domain/read-logs.ts";
import type { LogEvent } from "./domain/run-follower.ts";
import type { LogSource } from "./engines/engine.ts";

const SOURCES = {
  stdout: LogSourceMessage.STDOUT,
  stderr: LogSourceMessage.STDERR,
  output: LogSourceMessage.OUTPUT,
  system: LogSourceMessage.SYSTEM,
} as const;
const NAMES = Object.keys(SOURCES) as LogSource[];
const BY_DEFAULT: readonly LogSource[] = ["stdout", "stderr", "output"];
const SECOND = 1_000_000_000n;

export function logsQueryFromMessage({ sandboxId, sources, after }: ReadLogsRequest): LogsQuery {
  const named = NAMES.filter((name) => sources.includes(SOURCES[name]));
  return { sandboxId, sources: new Set(named.length > 0 ? named : BY_DEFAULT), after };
}

export function logEventToMessage(
  event: LogEvent,
): MessageInitShape<typeof ReadLogsResponseSchema> {
  if (event.kind !== "entry") return { event: { case: event.kind, value: {} } };
  const { cursor, source, time, text } = event.entry;
  const value = {
    cursor: encodeCursor(cursor),
    source: SOURCES[source],
    time: { seconds: time / SECOND, nanos: Number(time % SECOND) },
    text,
  };
  return { event: { case: "entry", value } };
}
