import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { serviceUnavailable } from "./errors.ts";
import { operation } from "./http/operation.ts";

export interface Readiness {
  ready: boolean;
  /** Of each thing that is needed, whether it is there; `database`, for one. */
  checks: Record<string, boolean>;
}

const health = operation({
  id: "health",
  tag: "Health",
  summary: "Whether the process lives",
  description: "Asks nothing of anybody.",
  open: true,
  response: Type.Object({ status: Type.Literal("ok") }, { title: "Health" }),
  example: { status: "ok" },
});

const ready = operation({
  id: "ready",
  tag: "Health",
  summary: "Whether it can serve",
  description: "Else 503, whose message and `details.checks` say what is missing.",
  open: true,
  response: Type.Object(
    {
      status: Type.Literal("ready"),
      checks: Type.Record(Type.String(), Type.Boolean(), {
        description: "Of each thing that is needed, whether it is there.",
      }),
    },
    { title: "Readiness" },
  ),
  example: { status: "ready", checks: { database: true, orchestrator: true, running: true } },
  errors: ["service_unavailable"],
});

/** For the reference. */
export const HEALTH_ROUTES = [
  { method: "GET", path: "/healthz", operation: health },
  { method: "GET", path: "/readyz", operation: ready },
] as const;

/** `/healthz`: the process lives; `/readyz`: it can serve. Neither asks for a key. */
export function serveHealth(app: FastifyInstance, readiness: () => Promise<Readiness>): void {
  app.get("/healthz", async () => ({ status: "ok" }));
  app.get("/readyz", async (_, reply) => {
    const { ready, checks } = await readiness();
    if (ready) return { status: "ready", checks };
    const missing = Object.keys(checks).filter((name) => !checks[name]);
    // Not thrown: that a probe is told so is no failure, for the log.
    const answer = serviceUnavailable(`not ready: ${missing.join(", ")}`, { checks });
    return reply.code(answer.status).headers(answer.headers).send(answer.envelope());
  });
}
