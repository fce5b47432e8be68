export interface Organization {
  /** UUID. */
  id: string;
  name: string;
  slug: string;
  mfaRequired: boolean;
  /** null: it is not suspended. */
  suspendedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}
