import type { FastifyInstance, FastifyRequest } from "fastify";
import { invalidRequest } from "../errors.ts";

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
}

function parse(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    throw invalidRequest([{ field: "body", message: "is not valid JSON in UTF-8" }]);
  }
}
