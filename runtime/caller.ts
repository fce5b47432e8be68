/** Who makes a change; its snapshot goes into audit events. */
export type Actor =
  | { kind: "user"; user_id: string; label: string; redacted_email: string }
  | { kind: "api_key"; api_key_id: string; name: string }
  | { kind: "system"; code: string; label: string };

/** Who acts where nobody says otherwise: whoever runs the installation. */
export const OPERATOR: Actor = { kind: "system", code: "operator", label: "Operator" };

/** On whose behalf a call is made. */
export interface Caller {
  /** UUID. */
  orgId: string;
  actor: Actor;
  requestId: string;
  /** Where the request carries an idempotency key. */
  idempotency?: Idempotency;
}

/** Makes a change that is asked for again be done once. */
export interface Idempotency {
  /** 1 to 255 printable ASCII characters, the client's. */
  key: string;
  /** SHA-256 of what is asked for: method, path and body; 32 bytes. */
  requestSha256: Uint8Array;
}
