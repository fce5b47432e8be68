import type { Database } from "../prisma/database.ts";
import { inTime } from "../runtime/in-time.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import { isServing, type Served } from "./remotes.ts";
import type { Services } from "./services.ts";

const TIMEOUT_MS = 2_000;

type Orchestrators = Services["clients"]["orchestrators"];

/** Asks whether what a request needs is there: the database, and an orchestrator that leads an engine. */
export function createReadiness(
  database: Database,
  { orchestrators }: Services["clients"],
  lifecycle: Lifecycle,
) {
  return asking(lifecycle, {
    database: () => databaseAnswers(database),
    orchestrator: () => leads(orchestrators),
  });
}

/** The same where all of it is in other processes: each service says itself whether it can serve. */
export function createRemoteReadiness(
  remotes: Record<"sandbox" | "organization" | "billing", Served> & {
    orchestrator: { client: Orchestrators };
  },
  lifecycle: Lifecycle,
) {
  return asking(lifecycle, {
    sandbox: () => isServing(remotes.sandbox),
    organization: () => isServing(remotes.organization),
    billing: () => isServing(remotes.billing),
    orchestrator: () => leads(remotes.orchestrator.client),
  });
}

/** @throws ServiceError while it does not */
export async function databaseAnswers(database: Database): Promise<boolean> {
  await database.query("SELECT 1");
  return true;
}

function asking(lifecycle: Lifecycle, questions: Record<string, () => Promise<boolean>>) {
  return async () => {
    const answers = await Promise.all(
      Object.entries(questions).map(async ([name, ask]) => [name, await holds(ask())] as const),
    );
    const checks = { ...Object.fromEntries(answers), running: !lifecycle.stopping };
    return { ready: Object.values(checks).every(Boolean), checks };
  };
}

async function leads(orchestrators: Orchestrators): Promise<boolean> {
  const { engines } = await orchestrators.listEngines({}, { timeoutMs: TIMEOUT_MS });
  return engines.some(({ alive }) => alive);
}

async function holds(check: Promise<boolean>): Promise<boolean> {
  return inTime(check, TIMEOUT_MS).catch(() => false);
}
