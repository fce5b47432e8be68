import type { Actor } from "../../../runtime/caller.ts";
import type { Limits } from "./limits.ts";
import type { Metric } from "./metrics.ts";

/** Of one unit of a line, in millionths of a cent. */
export type Prices = Readonly<Record<Metric, bigint>>;

export interface Plan {
  name: string;
  limits: Limits;
  prices: Prices;
  /** ISO 4217. */
  currency: string;
  /** Nothing runs beyond the included vCPU and memory hours. */
  hardCap: boolean;
  /** Of organizations that were put on none. */
  isDefault: boolean;
}

/** What an organization has, and what it takes of it. */
export interface Account {
  isSuspended: boolean;
  plan: Plan;
  byDefault: boolean;
  overrides: Limits;
  /** Its overrides, then its plan's. */
  limits: Limits;
  /** The pool of this month that was found used up, and keeps it from starting anything. */
  exhaustedPool: string | null;
  totalSandboxes: number;
  ephemeralRunning: number;
  persistentRunning: number;
}

/** Who changes plans where the caller does not say. */
export const OPERATOR: Actor = { kind: "system", code: "operator", label: "Operator" };
