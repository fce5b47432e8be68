import type { FastifyInstance } from "fastify";
import { serviceUnavailable } from "./errors.ts";

export interface Readiness {
  ready: boolean;
  /** Of each thing that is needed, whether it is there; `database`, for one. */
  checks: Record<string, boolean>;
}

/** `/healthz`: the process lives; `/readyz`: it can serve. Neither asks for a key. */
export function serveHealth(app: FastifyInstance, readiness: () => Promise<Readiness>): void {
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async () => {
    const { ready, checks } = await readiness();
    if (ready) return { status: "ready", checks };
    const missing = Object.keys(checks).filter((name) => !checks[name]);
    throw serviceUnavailable(`not ready: ${missing.join(", ")}`, { checks });
  });
}
