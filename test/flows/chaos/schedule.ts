import type { Random } from "../../support/random.ts";

/** What is done to whom. */
export type Victim =
  | "gateway-1"
  | "gateway-2"
  | "sandbox-1"
  | "sandbox-2"
  | "organization"
  | "billing-1"
  | "billing-2"
  | "orchestrator-1"
  | "orchestrator-2"
  | "postgres"
  /** The engine host with all its machines, or dockerd. */
  | "engine";

export type Blow =
  | { kind: "kill"; victim: Victim; afterMs: number; forMs: number }
  /** SIGSTOP, for longer than a lease lasts. */
  | { kind: "freeze"; victim: "orchestrator-1" | "orchestrator-2"; afterMs: number; forMs: number }
  /** The engine answers nobody. */
  | { kind: "cut"; victim: "engine"; afterMs: number; forMs: number };

/** A pause of this length or more is to get something done in. */
export const CALM_MS = 2_000;

const SIMULATED: Record<Victim, number> = {
  "gateway-1": 9,
  "gateway-2": 9,
  "sandbox-1": 12,
  "sandbox-2": 12,
  organization: 8,
  "billing-1": 4,
  "billing-2": 4,
  "orchestrator-1": 16,
  "orchestrator-2": 16,
  postgres: 18,
  engine: 4,
};
/** dockerd is what this variant is about. */
const DOCKER: Record<Victim, number> = { ...SIMULATED, engine: 30 };

/** N kills in their order, with freezes and cuts between them. Pure. */
export function scheduleOf(random: Random, kills: number, engine: "simulated" | "docker"): Blow[] {
  const weights = engine === "docker" ? DOCKER : SIMULATED;
  // Real machines take longer to come and go.
  const calm = engine === "docker" ? 0.6 : 0.25;
  const blows: Blow[] = [];
  for (let killed = 0; killed < kills; killed += 1) {
    if (random.chance(0.1)) blows.push(disturbance(random));
    blows.push({
      kind: "kill",
      victim: random.weighted(weights),
      // Blows in a row, and now and then time enough to get something done between two.
      afterMs: random.chance(calm) ? random.between(CALM_MS, 5_000) : random.between(50, 1_200),
      // Often at once, as a supervisor does it, and sometimes after a while.
      forMs: random.chance(0.7) ? random.between(0, 400) : random.between(400, 4_000),
    });
  }
  return blows;
}

function disturbance(random: Random): Blow {
  const afterMs = random.between(50, 1_500);
  if (random.chance(0.5))
    return { kind: "cut", victim: "engine", afterMs, forMs: random.between(500, 5_000) };
  const victim = random.pick(["orchestrator-1", "orchestrator-2"] as const);
  return { kind: "freeze", victim, afterMs, forMs: random.between(6_000, 9_000) };
}
