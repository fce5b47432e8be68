import pino, { type DestinationStream, type Logger, type LoggerOptions } from "pino";
import pretty from "pino-pretty";
import type { LogConfig } from "./config.ts";
import { tracing } from "./tracing/spans.ts";

export type { Logger };

/** Header values that must not be written down, wherever a log call puts the headers. */
const SECRET = ["authorization", "*.authorization", "*.*.authorization"];

/**
 * The program's log, on standard output: for people, or a JSON object a line.
 * Fields by convention, in snake case: `role`, `request_id`, `org_id`, `sandbox_id`, `err`, and `trace_id` where something
 * is traced; never a body or a secret.
 * @param role `all` where it is every role in one process
 */
export function createLogger(
  { level, format }: LogConfig,
  role: string,
  destination: DestinationStream = standardOutput(format),
): Logger {
  const options: LoggerOptions = {
    level,
    base: { role },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    mixin: traceFields,
    redact: { paths: SECRET, censor: "[redacted]" },
  };
  return pino(options, destination);
}

function traceFields(): object {
  const id = tracing()?.traceId();
  return id === undefined ? {} : { trace_id: id };
}

// Both write at once, so that the last lines before an exit are not lost.
function standardOutput(format: LogConfig["format"]): DestinationStream {
  const forPeople = format === "pretty" || (format === "auto" && process.stdout.isTTY);
  if (!forPeople) return pino.destination({ fd: 1, sync: true });
  return pretty({ sync: true, translateTime: "SYS:HH:MM:ss.l", ignore: "role" });
}
