import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { invalidRequest, PublicError } from "../errors.ts";

export const JSON_TYPE = "application/json; charset=utf-8";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** JSON bodies and no others. An empty body is an absent one, whatever its type says it would be. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (_request: FastifyRequest, body: Buffer) => parse(body),
  );
  app.addContentTypeParser("*", async (_request: FastifyRequest, payload: IncomingMessage) =>
    refuseContent(payload),
  );
}

/** No body at all: whatever is sent is left unread, whatever its type. */
export function ignoreBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null, undefined));
}

export function mediaTypeRefused(): PublicError {
  return new PublicError("unsupported_media_type", "the body must be application/json");
}

// `curl -d ''`, for one, says of a body that it does not send that it is a form.
async function refuseContent(payload: IncomingMessage): Promise<undefined> {
  // The answer needs the socket.
  for await (const chunk of payload.iterator({ destroyOnReturn: false }))
    if (chunk.length > 0) throw mediaTypeRefused();
}

function parse(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    throw invalidRequest([{ field: "body", message: "is not valid JSON in UTF-8" }]);
  }
}
