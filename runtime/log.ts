import pino, { type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";
import type { LogLevel } from "./env.ts";

export type { Logger };

/** Header values that must not be written down, wherever a log call puts the headers. */
const SECRET = ["authorization", "*.authorization", "*.*.authorization"];

/**
 * The program's log, on standard output: for people in a terminal, else a JSON object a line.
 * Fields by convention: `request_id`, `org_id`, `err`; never a body or a secret.
 */
export function createLogger(
  level: LogLevel,
  destination: DestinationStream = standardOutput(),
): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRET, censor: "[redacted]" },
  };
  return pino(options, destination);
}

// Both write at once, so that the last lines before an exit are not lost.
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return pretty({ sync: true, translateTime: "SYS:HH:MM:ss.l" });
  return pino.destination({ fd: 1, sync: true });
}
