import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { closed } from "../support/closed-schema.ts";
import type { Built } from "./build.ts";
import type { Case } from "./cases.ts";
import { type OpenApi, type Operation, type Schema, schemaOf } from "./document.ts";
import type { Answer, Silence } from "./http.ts";
import { OF_STATE } from "./rules.ts";
import { decoded, jsonOf, typed } from "./typed.ts";

/** Whether answers are those that the document promises. */
export class Judge {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: OpenApi) {
    formats.default(this.#ajv);
    // Int32 and int64 are bounds as well, which are there.
    this.#ajv.addSchema(closed(document) as object, "closed");
    this.#ajv.addSchema(document, "open");
  }

  /** @returns what is wrong with the answer, in a word or two that are the same for the same fault; undefined: nothing */
  faultOf(given: Case, built: Built, answer: Answer | Silence): string | undefined {
    if ("silent" in answer)
      return answer.silent === "hung up"
        ? undefined
        : `no answer: ${answer.silent} ${answer.reason}`;
    return (
      commonFault(built, answer) ??
      (built.isRouted ? this.#routedFault(given, built, answer) : this.#strayFault(built, answer))
    );
  }

  /** Of a method or a path that the operation does not have: never its success by accident, never a fault of ours. */
  #strayFault({ request }: Built, answer: Answer): string | undefined {
    if (answer.status < 400 || request.method === "HEAD") return undefined;
    if (answer.status === 405 && !answer.headers.allow) return "405 without Allow";
    return this.#envelopeFault(answer);
  }

  #routedFault(given: Case, built: Built, answer: Answer): string | undefined {
    const { operation } = given;
    const { status } = answer;
    const documented = operation.responses[status];
    if (status === 429 && !built.isKnown) return this.#envelopeFault(answer);
    if (!documented && !isBeforeRouting(answer, built)) return `status ${status} is not documented`;
    return (
      (documented && headerFault(documented.headers ?? {}, answer)) ??
      (status < 400
        ? this.#successFault(given, built, answer)
        : (this.#envelopeFault(answer) ??
          codeFault(operation, answer, built) ??
          goodFault(built, answer)))
    );
  }

  #successFault({ operation }: Case, built: Built, answer: Answer): string | undefined {
    const media = Object.entries(operation.responses[answer.status]?.content ?? {})[0];
    const type = answer.headers["content-type"] ?? "";
    if (!media) return answer.body === "" ? undefined : `status ${answer.status} has a body`;
    if (!type.startsWith(media[0])) return `content type ${type}`;
    const at = `responses/${answer.status}/content/${escaped(media[0])}/schema`;
    const fault =
      media[0] === "application/json" &&
      this.#misfit("closed", pointer(operation, at), answer.body);
    return fault ? `body: ${fault}` : this.#laxness(operation, built);
  }

  /** A success of a request that the document does not allow. */
  #laxness(operation: Operation, built: Built): string | undefined {
    for (const parameter of operation.parameters) {
      const { name } = parameter;
      const texts = parameter.in === "path" ? [decoded(built.path[name] ?? "")] : built.query[name];
      if (parameter.in === "header" || texts === undefined) continue;
      if (!this.#fits(schemaOf(parameter), texts)) return `accepts ${parameter.in} ${name}`;
    }
    if (operation.body?.media !== "application/json") return undefined;
    const { body } = built.request;
    if (!body || body.length === 0) return operation.body.required ? "accepts no body" : undefined;
    const at = `requestBody/content/${escaped("application/json")}/schema`;
    const fault = this.#misfit("open", pointer(operation, at), jsonOf(body));
    return fault ? `accepts a body that does not fit: ${fault}` : undefined;
  }

  #fits(schema: Schema, texts: string[]): boolean {
    const value = typed(schema, texts);
    const inDocument = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"open#/'));
    return this.#ajv.validate(inDocument, value);
  }

  #envelopeFault(answer: Answer): string | undefined {
    if (answer.headers["content-type"] !== "application/json; charset=utf-8")
      return `an error of type ${answer.headers["content-type"]}`;
    const fault = this.#misfit("closed", "/components/schemas/Error", answer.body);
    return fault && `envelope: ${fault}`;
  }

  /** What of a value does not fit what the document has there. */
  #misfit(from: "closed" | "open", at: string, value: unknown): string | undefined {
    const ref = `${from}#${at}`;
    const check = this.#validators.get(ref) ?? this.#ajv.compile({ $ref: ref });
    this.#validators.set(ref, check);
    if (check(value)) return undefined;
    const [first] = check.errors ?? [];
    return `${first?.instancePath.replaceAll(/\d+/g, "N")} ${first?.message} ${first?.params?.additionalProperty ?? ""}`;
  }
}

/** Whatever was sent. */
function commonFault({ request }: Built, { status, headers }: Answer): string | undefined {
  if (status >= 500) return `status ${status}`;
  // What is no HTTP has no headers that anybody could have read.
  const isHttp = headers.connection !== "close" || status !== 400;
  const sent = isHttp ? request.headers["X-Request-Id"] : undefined;
  const own = headers["x-request-id"];
  if (!own || !/^[\x21-\x7e]{1,128}$/.test(own)) return `X-Request-Id is ${own}`;
  if (sent && /^[\x21-\x7e]{1,128}$/.test(sent) && own !== sent)
    return "X-Request-Id is another one";
  const banner = headers.server ?? headers["x-powered-by"];
  return banner && `a banner: ${banner}`;
}

/** Answers of the server to what reaches no operation. */
function isBeforeRouting({ status }: Answer, { isGood }: Built): boolean {
  return !isGood && [400, 404, 405].includes(status);
}

const OURS =
  /^(accept-ranges|content-range|etag|last-modified|x-ignored-fields|idempotent-replayed|ratelimit-.*|retry-after|www-authenticate)$/;

function headerFault(documented: Record<string, unknown>, { headers }: Answer): string | undefined {
  const known = new Set(Object.keys(documented).map((name) => name.toLowerCase()));
  const unknown = Object.keys(headers).find((name) => OURS.test(name) && !known.has(name));
  return unknown && `header ${unknown} is not documented`;
}

/** The code of an error is one that the operation has under this status. */
function codeFault({ responses }: Operation, { status, body }: Answer, { isGood }: Built) {
  const code = codeOf(body);
  const examples = Object.keys(responses[status]?.content?.["application/json"]?.examples ?? {});
  const isKnown = examples.some((name) => name === code || name === `${code}_${status}`);
  const isStray = !isGood && (code === "not_found" || code === "method_not_allowed");
  return isKnown || isStray ? undefined : `code ${code} with ${status} is not documented`;
}

/** A request that fits must not be refused for its form. */
function goodFault({ isGood }: Built, { status, body }: Answer): string | undefined {
  if (!isGood || ![400, 401, 403, 405, 413, 415, 429].includes(status)) return undefined;
  const error = (
    body as { error: { message: string; details: { errors?: { field: string }[] } | null } }
  ).error;
  const faults = error.details?.errors ?? [];
  const isOfState =
    faults.length > 0 && faults.every(({ field }) => OF_STATE.some((rule) => rule.test(field)));
  return isOfState ? undefined : `a good request is refused: ${status} ${shortened(error.message)}`;
}

function shortened(message: string): string {
  return message
    .replaceAll(/\d+/g, "N")
    .replaceAll(/\["[^\]]*\]/g, "[…]")
    .slice(0, 100);
}

function codeOf(body: unknown): string {
  return (body as { error: { code: string } }).error.code;
}

function pointer({ path, method }: Operation, rest: string): string {
  return `/paths/${escaped(path)}/${method.toLowerCase()}/${rest}`;
}

function escaped(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}
