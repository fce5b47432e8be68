/** Whose a good key is. */
export interface KeyHolder {
  orgId: string;
  apiKeyId: string;
  apiKeyName: string;
  orgSuspended: boolean;
  /** null: never. */
  expiresAt: Date | null;
}

/** A key as it may be shown. */
export interface ApiKey {
  /** UUID. */
  id: string;
  name: string;
  /** Such as `sgt_live_`. */
  prefix: string;
  lastFour: string;
  createdAt: Date;
  /** null: never. */
  lastUsedAt: Date | null;
  /** null: never. */
  expiresAt: Date | null;
  /** By the database's clock. */
  expired: boolean;
  revokedAt: Date | null;
  /** UUID of the key that takes its place. */
  replacedBy: string | null;
}

/** A key and what opens with it: it is answered once, and never kept. */
export interface NewKey {
  key: ApiKey;
  secret: string;
}

/** What is stored of a key. */
export interface KeyMaterial {
  sha256: Uint8Array;
  prefix: string;
  lastFour: string;
}

/** Which keys to look up again. */
export interface KeyChange {
  orgId: string;
  /** Empty: every key of the organization. */
  apiKeyId: string;
}

/** Why a key cannot be rotated; undefined where it can. */
export function endOf(key: ApiKey): "revoked" | "rotated" | "expired" | undefined {
  if (key.revokedAt) return "revoked";
  if (key.replacedBy !== null) return "rotated";
  return key.expired ? "expired" : undefined;
}
