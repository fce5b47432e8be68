import { Agent, type IncomingMessage, request } from "node:http";

/** One request, and what it has to be answered with. */
export interface Wanted {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: object | Buffer;
}

export interface Reply {
  /** 0: there is none; `reason` says why. */
  status: number;
  reason: string;
  /** Of JSON the value, else undefined. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API answers
  body: any;
}

const TIMEOUT_MS = 20_000;

/** Calls gateways in turn, over connections that are kept. */
export class Caller {
  readonly #urls: readonly URL[];
  readonly #key: string;
  readonly #agent: Agent;
  #turn = 0;

  /** @param connections most of them to all gateways together */
  constructor(urls: readonly string[], key: string, connections: number) {
    this.#urls = urls.map((url) => new URL(url));
    this.#key = key;
    const maxSockets = Math.max(1, Math.ceil(connections / urls.length));
    this.#agent = new Agent({ keepAlive: true, maxSockets });
  }

  /** Never throws. */
  call(wanted: Wanted): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const silent = (error: Error) => resolve({ status: 0, reason: error.message, body: undefined });
    const outgoing = this.#begin(wanted, this.#agent);
    outgoing.setTimeout(TIMEOUT_MS, () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", silent);
    outgoing.on("response", (incoming) => read(incoming).then(resolve, silent));
    finish(outgoing, wanted.body);
    return promise;
  }

  /** Reads a stream for so long, then hangs up. */
  follow(path: string, forMs: number): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const wanted = { method: "GET", path };
    const outgoing = this.#begin(wanted, undefined);
    const broken = (error: Error) => resolve({ status: 0, reason: error.message, body: undefined });
    outgoing.on("error", broken);
    outgoing.on("response", (incoming) => {
      const done = () => resolve({ status: incoming.statusCode ?? 0, reason: "", body: undefined });
      incoming.resume().on("end", done).on("error", broken);
      setTimeout(() => {
        done();
        outgoing.destroy();
      }, forMs);
    });
    outgoing.end();
    return promise;
  }

  close(): void {
    this.#agent.destroy();
  }

  #begin({ method, path, headers = {}, body }: Wanted, agent: Agent | undefined) {
    const { hostname, port } = this.#next();
    const type = Buffer.isBuffer(body) ? "application/octet-stream" : "application/json";
    return request({
      hostname,
      port,
      method,
      path,
      agent: agent ?? false,
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(body && { "content-type": type }),
        ...headers,
      },
    });
  }

  #next(): URL {
    this.#turn = (this.#turn + 1) % this.#urls.length;
    return this.#urls[this.#turn] as URL;
  }
}

function finish(outgoing: ReturnType<typeof request>, body: object | Buffer | undefined): void {
  if (body === undefined) outgoing.end();
  else outgoing.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

async function read(incoming: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const isJson = incoming.headers["content-type"]?.startsWith("application/json");
  const text = Buffer.concat(chunks).toString();
  return {
    status: incoming.statusCode ?? 0,
    reason: "",
    body: isJson ? JSON.parse(text) : undefined,
  };
}
