import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** nginx's number for an answer that was broken off before its end, nearly always by a client that hung up. */
const BROKEN_OFF = 499;

/** A request that is over. */
export interface Finished {
  request: FastifyRequest;
  reply: FastifyReply;
  /** Its path's pattern in OpenAPI's notation; `unmatched` where no route took it. */
  route: string;
  /** As it was answered; 499: broken off. */
  status: number;
  /** Since its headers were read. */
  ms: number;
}

/** Tells of every request when its answer is complete, or is not to be any more. */
export function onFinished(app: FastifyInstance, tell: (finished: Finished) => void): void {
  const routes = new Map<string, string>();
  const finished = (request: FastifyRequest, reply: FastifyReply, status: number) => {
    const { url } = request.routeOptions;
    const route = url === undefined || request.is404 ? "unmatched" : nameOf(routes, url);
    tell({ request, reply, route, status, ms: reply.elapsedTime });
  };
  app.addHook("onRequest", (request, reply, done) => {
    let complete = false;
    reply.raw
      .once("finish", () => {
        complete = true;
        finished(request, reply, reply.statusCode);
      })
      .once("close", () => {
        if (!complete) finished(request, reply, BROKEN_OFF);
      });
    done();
  });
}

/** `/v1/sandboxes/{sandbox_id}`, as the reference writes it. */
function nameOf(names: Map<string, string>, pattern: string): string {
  const known = names.get(pattern);
  if (known !== undefined) return known;
  const name = pattern.replaceAll(/:(\w+)/g, "{$1}");
  names.set(pattern, name);
  return name;
}
