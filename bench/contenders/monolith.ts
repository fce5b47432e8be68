import { randomUUID } from "node:crypto";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { v7 as uuidv7 } from "uuid";
import { page, type Sign } from "../../runtime/pages.ts";
import { generateSlug } from "../../services/sandbox/domain/slug.ts";
import { envelope, publicSandbox } from "./answers.ts";
import { type CreateBody, createBody, storedSpec } from "./create-body.ts";
import { Keys } from "./keys.ts";
import type { Holder, Row, Store } from "./store.ts";

declare module "fastify" {
  interface FastifyRequest {
    holder: Holder;
  }
}

const JSON_TYPE = "application/json; charset=utf-8";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SANE_ID = /^[\x21-\x7e]{1,128}$/;
const idParams = {
  type: "object",
  properties: {
    id: { type: "string", pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$" },
  },
};
const listQuery = {
  type: "object",
  properties: {
    limit: { type: "string", pattern: "^([1-9]\\d?|100)$" },
    cursor: { type: "string" },
  },
};

/** The public routes that the bench asks, in one Fastify application that talks to its database itself. */
export function createMonolith(store: Store, sign: Sign) {
  const keys = new Keys(store);
  const app = Fastify({
    genReqId: ({ headers: { "x-request-id": sent } }) =>
      typeof sent === "string" && SANE_ID.test(sent) ? sent : randomUUID(),
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
  });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    const holder = await keys.find(request.headers.authorization);
    if (!holder) return refuse(reply);
    request.holder = holder;
    return undefined;
  });
  app.setErrorHandler((error, _request, reply) => fail(error, reply));

  app.get("/v1/sandboxes/:id", { schema: { params: idParams } }, async (request, reply) => {
    const { id } = request.params as { id: string };
    return answer(reply, await store.findById(request.holder.orgId, id.toLowerCase()));
  });
  app.get("/v1/sandboxes/by-name/:name", async (request, reply) => {
    const { name } = request.params as { name: string };
    const found = NAME.test(name) && (await store.findByName(request.holder.orgId, name));
    return answer(reply, found || undefined);
  });
  app.get("/v1/sandboxes", { schema: { querystring: listQuery } }, async (request, reply) => {
    const { orgId } = request.holder;
    const { limit = "20", cursor = "" } = request.query as { limit?: string; cursor?: string };
    const listed = { list: "sandboxes", orgId, filters: [[], []] };
    const asked = { limit: Number(limit), cursor };
    const { rows, nextCursor } = await page(sign, listed, asked, (most, after) =>
      store.list(orgId, most, after),
    );
    const data = rows.map(publicSandbox);
    return send(reply, { data, has_more: nextCursor !== null, next_cursor: nextCursor });
  });
  app.post("/v1/sandboxes", { schema: { body: createBody } }, (request, reply) =>
    create(store, request, reply),
  );
  return app;
}

async function create(store: Store, request: FastifyRequest, reply: FastifyReply) {
  const body = request.body as CreateBody;
  const slug = generateSlug();
  const row = { id: uuidv7(), name: body.name || slug, slug, spec: storedSpec(body) };
  const made = await store.create(request.holder, row);
  if (made === "quota")
    return reply.code(403).type(JSON_TYPE).send(envelope("quota_exceeded", made));
  // What was made up is made up anew.
  if (made === "slug" || (made === "name" && !body.name)) return create(store, request, reply);
  if (made === "name")
    return reply.code(409).type(JSON_TYPE).send(envelope("name_already_exists", made));
  return send(reply, publicSandbox(made));
}

function answer(reply: FastifyReply, row: Row | undefined) {
  if (row) return send(reply, publicSandbox(row));
  return reply.code(404).type(JSON_TYPE).send(envelope("sandbox_not_found", "resource not found"));
}

// Stringified at once: without a response schema Fastify would do no more.
function send(reply: FastifyReply, body: unknown) {
  return reply.type(JSON_TYPE).send(JSON.stringify(body));
}

function refuse(reply: FastifyReply) {
  return reply
    .code(401)
    .header("www-authenticate", "Bearer")
    .type(JSON_TYPE)
    .send(envelope("invalid_api_key", "unauthorized"));
}

function fail(error: unknown, reply: FastifyReply) {
  const { statusCode = 500, message } = error as { statusCode?: number; message: string };
  if (statusCode >= 500) console.error(error);
  const code = statusCode >= 500 ? "internal" : "invalid_request";
  return reply.code(statusCode).type(JSON_TYPE).send(envelope(code, message));
}
