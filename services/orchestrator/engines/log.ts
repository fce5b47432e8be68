/** The part of a pino logger that engines use. */
export interface EngineLog {
  trace: Write;
  debug: Write;
  info: Write;
  warn: Write;
  /** @param options.level of the child alone; absent: as its parent's */
  child(fields: object, options?: { level?: string }): EngineLog;
}

type Write = (fields: object, message: string) => void;
