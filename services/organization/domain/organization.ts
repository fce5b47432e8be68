export interface Organization {
  /** UUID. */
  id: string;
  name: string;
  slug: string;
  mfaRequired: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** Whose a good key is. */
export interface KeyHolder {
  orgId: string;
  apiKeyId: string;
  apiKeyName: string;
  orgSuspended: boolean;
  /** null: never. */
  expiresAt: Date | null;
}
