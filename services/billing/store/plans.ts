import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { Limits } from "../domain/limits.ts";
import type { Plan } from "../domain/plan.ts";

// The verbs that change something are functions of the billing schema: they write their events themselves.

export const PLAN_COLUMNS = `
  p.name, p.limits, p.currency, p.vcpu_hour, p.memory_gib_hour, p.disk_gib_hour, p.storage_gib_hour,
  p.hard_cap, p.is_default`;

export interface PlanRow {
  name: string;
  limits: Limits;
  currency: string;
  vcpu_hour: bigint;
  memory_gib_hour: bigint;
  disk_gib_hour: bigint;
  storage_gib_hour: bigint;
  hard_cap: boolean;
  is_default: boolean;
}

export function toPlan(row: PlanRow): Plan {
  const { name, limits, currency } = row;
  const prices = {
    vcpu: row.vcpu_hour,
    memory: row.memory_gib_hour,
    disk: row.disk_gib_hour,
    storage: row.storage_gib_hour,
  };
  return { name, limits, prices, currency, hardCap: row.hard_cap, isDefault: row.is_default };
}

/** All, by name. */
export async function listPlans(database: Database): Promise<Plan[]> {
  const rows = await database.query<PlanRow>(
    `SELECT ${PLAN_COLUMNS} FROM billing.plans p ORDER BY p.name COLLATE "C"`,
  );
  return rows.map(toPlan);
}

export async function hasPlan(database: Database, name: string): Promise<boolean> {
  const rows = await database.query("SELECT name FROM billing.plans WHERE name = $1", name);
  return rows.length > 0;
}

/** Makes a plan or replaces it. @returns false where it is the default plan and would not be any more */
export async function setPlan(database: Database, plan: Plan, actor: Actor): Promise<boolean> {
  const { name, limits, prices, currency, hardCap, isDefault } = plan;
  const given = {
    name,
    limits,
    currency,
    vcpu_hour: String(prices.vcpu),
    memory_gib_hour: String(prices.memory),
    disk_gib_hour: String(prices.disk),
    storage_gib_hour: String(prices.storage),
    hard_cap: hardCap,
    is_default: isDefault,
  };
  const [row] = await database.query<{ done: boolean }>(
    "SELECT billing.set_plan($1::jsonb, $2::jsonb) AS done",
    JSON.stringify(given),
    JSON.stringify(actor),
  );
  return row?.done ?? false;
}

/** Puts an organization on a plan; null: on none. */
export async function assignPlan(
  database: Database,
  orgId: string,
  plan: string | null,
  actor: Actor,
): Promise<void> {
  await database.query(
    "SELECT billing.assign_plan($1::uuid, $2::text, $3::jsonb)::text AS done",
    orgId,
    plan,
    JSON.stringify(actor),
  );
}

export async function setOverrides(
  database: Database,
  orgId: string,
  limits: Limits,
  cleared: readonly string[],
  actor: Actor,
): Promise<void> {
  await database.query(
    "SELECT billing.set_overrides($1::uuid, $2::jsonb, $3::text[], $4::jsonb)::text AS done",
    orgId,
    JSON.stringify(limits),
    cleared,
    JSON.stringify(actor),
  );
}
