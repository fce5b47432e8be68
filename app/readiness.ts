import type { Database } from "../prisma/database.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Services } from "./services.ts";

const TIMEOUT_MS = 2_000;

/** Asks whether what a request needs is there: the database, and an orchestrator that leads an engine. */
export function createReadiness(
  database: Database,
  { orchestrators }: Services["clients"],
  lifecycle: Lifecycle,
) {
  return async () => {
    const [answers, led] = await Promise.all([
      holds(database.query("SELECT 1").then(() => true)),
      holds(leads(orchestrators)),
    ]);
    const checks = { database: answers, orchestrator: led, running: !lifecycle.stopping };
    return { ready: Object.values(checks).every(Boolean), checks };
  };
}

async function leads(orchestrators: Services["clients"]["orchestrators"]): Promise<boolean> {
  const { engines } = await orchestrators.listEngines({}, { timeoutMs: TIMEOUT_MS });
  return engines.some(({ alive }) => alive);
}

async function holds(check: Promise<boolean>): Promise<boolean> {
  const late = new Promise<false>((done) => {
    setTimeout(() => done(false), TIMEOUT_MS).unref();
  });
  return Promise.race([check.catch(() => false), late]);
}
