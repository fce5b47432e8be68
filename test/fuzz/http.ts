import http from "node:http";

/** A request as it is sent. */
export interface Request {
  method: string;
  /** Path and query. */
  target: string;
  query: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
  /** The id in its path, where it is about one thing. */
  about: string | undefined;
}

export interface Answer {
  status: number;
  /** In lower case. */
  headers: Record<string, string>;
  /** Of JSON the value, else the text. */
  body: unknown;
}

/** Why there is no answer: it took too long, the connection broke, or we hung up on purpose. */
export type Silence = { silent: "timeout" | "broken" | "hung up"; reason: string };

const TIMEOUT_MS = 30_000;
const HOLD_MS = 1_500;
const STREAM_MS = 60;

/** Sends to one server, over connections that it keeps. */
export class Sender {
  readonly #base: URL;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

  constructor(url: string) {
    this.#base = new URL(url);
  }

  send(request: Request): Promise<Answer | Silence> {
    const { method, target, headers, body } = request;
    const { hostname, port } = this.#base;
    const holds = /wait_for=running/.test(target) && /wait_timeout=\d{2,}/.test(target);
    return new Promise((done) => {
      const outgoing = http.request({
        hostname,
        port,
        method,
        path: target,
        headers,
        agent: this.#agent,
      });
      const timer = setTimeout(give, holds ? HOLD_MS : TIMEOUT_MS);
      function give() {
        done(
          holds ? { silent: "hung up", reason: "a long wait" } : { silent: "timeout", reason: "" },
        );
        outgoing.destroy();
      }
      outgoing.on("error", (error) => {
        clearTimeout(timer);
        done({ silent: "broken", reason: error.message });
      });
      outgoing.on("response", (incoming) => {
        read(incoming)
          .then(done, (error) => done({ silent: "broken", reason: String(error) }))
          .finally(() => clearTimeout(timer));
      });
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

async function read(incoming: http.IncomingMessage): Promise<Answer> {
  const { statusCode = 0, headers } = incoming;
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  const answer = { status: statusCode, headers: Object.fromEntries(flat) };
  const type = headers["content-type"] ?? "";
  const isStream = type.startsWith("text/event-stream");
  const text = isStream ? await beginning(incoming) : await whole(incoming);
  return { ...answer, body: type.startsWith("application/json") ? parsed(text) : text };
}

async function whole(incoming: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** What a stream that may never end sends in a moment; then the client hangs up. */
function beginning(incoming: http.IncomingMessage): Promise<string> {
  return new Promise((done) => {
    let text = "";
    const end = () => {
      clearTimeout(timer);
      done(text);
      incoming.destroy();
    };
    const timer = setTimeout(end, STREAM_MS);
    incoming.on("data", (chunk) => {
      text += chunk;
    });
    incoming.on("end", end).on("error", end);
  });
}

/** An answer that calls itself JSON and is none stays text, for the judge to refuse. */
function parsed(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}
