import type { Generator } from "../generator/generator.ts";
import type { Outcome } from "../generator/job.ts";
import { cpuMs, familyCpuMs } from "../support/measure.ts";
import { type Contender, PARTS, type Part } from "./contenders.ts";
import type { Row } from "./rows.ts";

/** Where processors are spent that is told apart. */
export type Spender = Part | "postgres" | "generator";

/** What one contender did in one turn. */
export interface Turn {
  perSecond: number;
  /** Microseconds of CPU for each request. */
  cpuUs: Record<Spender, number>;
  outcome: Outcome;
}

export interface Load {
  seconds: number;
  connections: number;
  /** Undefined: as much as it takes. */
  rate?: number;
}

/** Lets a contender do one kind of work for some seconds. */
export async function takeTurn(
  generator: Generator,
  contender: Contender,
  row: Row,
  postmaster: number,
  load: Load,
): Promise<Turn> {
  const before = await spent(contender.parts, postmaster);
  const outcome = await generator.run({ target: contender.target(row), ...load });
  const behind = await spent(contender.parts, postmaster);
  const { answers, tookMs } = outcome;
  const each = (part: Part | "postgres") => ((behind[part] - before[part]) * 1_000) / answers;
  return {
    perSecond: (answers / tookMs) * 1_000,
    cpuUs: {
      gateway: each("gateway"),
      service: each("service"),
      others: each("others"),
      postgres: each("postgres"),
      generator: (outcome.cpuMs * 1_000) / answers,
    },
    outcome,
  };
}

/** CPU that each part has used so far, in milliseconds. */
export async function spent(parts: Contender["parts"], postmaster: number) {
  const sum = async (part: Part) => {
    const all = await Promise.all((parts[part] ?? []).map(cpuMs));
    return all.reduce((total, ms) => total + ms, 0);
  };
  const [gateway, service, others] = await Promise.all(PARTS.map(sum));
  return {
    gateway: gateway ?? 0,
    service: service ?? 0,
    others: others ?? 0,
    postgres: await familyCpuMs(postmaster),
  };
}
