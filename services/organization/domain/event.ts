/** A JSON object; what is in it is for people and programs outside. */
export type JsonRecord = { [key: string]: JsonValue };
type JsonValue = string | number | boolean | null | JsonRecord | JsonValue[];

/** One line of the audit log. */
export interface AuditEvent {
  /** UUID (version 7). */
  id: string;
  orgId: string;
  category: string;
  eventType: string;
  actor: JsonRecord;
  payload: JsonRecord;
  /** Microseconds since 1970. */
  timestampUs: bigint;
}
