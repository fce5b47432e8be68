import type { Client } from "@connectrpc/connect";
import type { Database } from "../prisma/database.ts";
import type { OrchestratorService } from "../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { inTime } from "../runtime/in-time.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";

const TIMEOUT_MS = 2_000;

/** Whether a program can serve, and of each thing that it needs, whether it is there. */
export interface Look {
  ready: boolean;
  checks: Record<string, boolean>;
}

type Question = () => Promise<boolean>;

/** What a program needs to serve, by name. Each is missing until the part that knows it has come. */
export class Needs {
  readonly #questions = new Map<string, Question>();
  readonly #lifecycle: Pick<Lifecycle, "stopping">;
  #asking: Promise<Record<string, boolean>> | undefined;

  constructor(lifecycle: Pick<Lifecycle, "stopping">) {
    this.#lifecycle = lifecycle;
  }

  /** Names what the program will ask for, before it waits for any of it. */
  readonly expect = (...names: readonly string[]): void => {
    for (const name of names) this.#questions.set(name, async () => false);
  };

  /** How it is found out from now on; a question that fails, or takes longer than two seconds, counts as no. */
  readonly ask = (name: string, question: Question): void => {
    this.#questions.set(name, question);
  };

  /** Asks all of it, at once. */
  readonly look = async (): Promise<Look> => {
    const checks = { ...(await this.#answers()), running: !this.#lifecycle.stopping };
    return { ready: Object.values(checks).every(Boolean), checks };
  };

  /** Whether all of it is there: what still comes is served, also while the program is about to end. */
  readonly serves = async (): Promise<boolean> =>
    Object.values(await this.#answers()).every(Boolean);

  // Anybody may ask: however many do at once, each thing is asked for once.
  #answers(): Promise<Record<string, boolean>> {
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askAll(): Promise<Record<string, boolean>> {
    const asked = [...this.#questions].map(
      async ([name, ask]) => [name, await holds(ask)] as const,
    );
    return Object.fromEntries(await Promise.all(asked));
  }
}

async function holds(ask: Question): Promise<boolean> {
  return inTime(ask(), TIMEOUT_MS).catch(() => false);
}

/** @throws ServiceError while it does not */
export async function databaseAnswers(database: Database): Promise<boolean> {
  await database.query("SELECT 1");
  return true;
}

/** Whether an orchestrator leads an engine. */
export async function leads(orchestrators: Client<typeof OrchestratorService>): Promise<boolean> {
  const { engines } = await orchestrators.listEngines({}, { timeoutMs: TIMEOUT_MS });
  return engines.some(({ alive }) => alive);
}
