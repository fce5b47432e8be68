import type { PagePoint, Slice } from "../../runtime/pages.ts";
import type { SandboxSpec } from "../../services/sandbox/domain/spec.ts";
import type { SandboxRow } from "../../services/sandbox/store/rows.ts";

/** A row of sandbox.sandboxes. */
export type Row = Omit<SandboxRow, "generation">;

/** Whose key it is. */
export interface Holder {
  orgId: string;
  apiKeyId: string;
  apiKeyName: string;
}

export interface NewRow {
  id: string;
  name: string;
  slug: string;
  spec: SandboxSpec;
}

/** Why nothing was made. */
export type Refusal = "quota" | "name" | "slug";

/** What a monolith asks of its database; the contenders differ in this alone. */
export interface Store {
  findHolder(sha256: Buffer): Promise<Holder | undefined>;
  findById(orgId: string, id: string): Promise<Row | undefined>;
  findByName(orgId: string, name: string): Promise<Row | undefined>;
  /** Newest first. */
  list(orgId: string, limit: number, after: PagePoint | null): Promise<Slice<Row>>;
  /** Takes a place of the quota, makes the row and appends the audit event, in one commit. */
  create(holder: Holder, row: NewRow): Promise<Row | Refusal>;
}

export function actorOf({ apiKeyId, apiKeyName }: Holder) {
  return { kind: "api_key", api_key_id: apiKeyId, name: apiKeyName };
}

/** Which unique index refused a row. */
export function takenOf(constraint: string | undefined): Refusal | undefined {
  if (constraint === "sandboxes_name_key") return "name";
  return constraint === "sandboxes_slug_key" ? "slug" : undefined;
}
