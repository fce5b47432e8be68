import Fastify, { type FastifyInstance } from "fastify";
import type { Config } from "../runtime/config.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { listen } from "./listen.ts";
import type { Needs } from "./readiness.ts";

/** Adds paths to the admin port. */
export type AdminPaths = (app: FastifyInstance) => void;

export interface AdminOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
}

/**
 * Opens the port for those who watch the program, where ADMIN_PORT asks for it. It is the first part of a program, so
 * that what is missing can be read while the others wait for it, and the last one to end.
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had
 */
export async function startAdmin(
  { config, log, lifecycle }: AdminOptions,
  paths: readonly AdminPaths[],
): Promise<string | undefined> {
  const { host, port } = config.admin;
  if (port === undefined) return undefined;
  const app = await lifecycle.start("admin port", {
    start: () => Fastify({ return503OnClosing: false }),
    end: (built) => built.close(),
  });
  for (const add of paths) add(app);
  const url = await listen(app, { host, port }, "ADMIN_HOST and ADMIN_PORT");
  log.info({ url }, "the admin port is open");
  return url;
}

/** `/healthz`: the process lives; `/readyz`: it can serve, or 503, and what of all that it needs is there. */
export function healthPaths(needs: Needs): AdminPaths {
  return (app) => {
    app.get("/healthz", async () => ({ status: "ok" }));
    app.get("/readyz", async (_, reply) => {
      const { ready, checks } = await needs.look();
      return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not_ready", checks });
    });
  };
}
