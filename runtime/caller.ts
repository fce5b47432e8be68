/** Who makes a change; its snapshot goes into audit events. */
export type Actor =
  | { kind: "api_key"; api_key_id: string; name: string }
  | { kind: "system"; code: string; label: string };

/** On whose behalf a call is made. */
export interface Caller {
  /** UUID. */
  orgId: string;
  actor: Actor;
  requestId: string;
}
