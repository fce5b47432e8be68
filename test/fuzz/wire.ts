import { connect } from "node:net";
import type { Finding } from "./finding.ts";

const PATIENCE_MS = 3_000;

/** Bytes on a connection of their own; what is answered has to be HTTP, and what is refused in the common envelope. */
interface Attack {
  name: string;
  bytes: string | Buffer;
  /** Statuses of the answers, in order; without it one answer that is a refusal, or none at all. */
  answers?: readonly number[];
}

const HOST = "Host: x\r\n";
const bad = (name: string, bytes: string | Buffer): Attack => ({ name, bytes });

function attacks(apiKey: string): Attack[] {
  const key = `Authorization: Bearer ${apiKey}\r\n`;
  const post = `POST /v1/sandboxes HTTP/1.1\r\n${HOST}${key}Content-Type: application/json\r\n`;
  const org = `GET /v1/me/org HTTP/1.1\r\n${HOST}${key}`;
  return [
    bad("no HTTP at all", "hello there\r\n\r\n"),
    bad("TLS", Buffer.from("16030100f8010000f40303", "hex")),
    bad("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    bad("HTTP/0.9", "GET /\r\n\r\n"),
    bad("HTTP/9.9", `GET /healthz HTTP/9.9\r\n${HOST}\r\n`),
    bad("an unknown method", `BREW /healthz HTTP/1.1\r\n${HOST}\r\n`),
    bad("a space in the path", `GET /heal thz HTTP/1.1\r\n${HOST}\r\n`),
    bad("NUL in the path", `GET /heal\0thz HTTP/1.1\r\n${HOST}\r\n`),
    bad("NUL in a header", `${org}X: a\0b\r\n\r\n`),
    bad("a header without a colon", `${org}nothing\r\n\r\n`),
    bad("a space before the colon", `${org}Content-Length : 0\r\n\r\n`),
    bad("a folded header", `${org}X: a\r\n b\r\n\r\n`),
    bad("a bare CR", `${org}X: a\rY: b\r\n\r\n`),
    bad("no Host", `GET /healthz HTTP/1.1\r\n\r\n`),
    bad("two Hosts", `GET /healthz HTTP/1.1\r\n${HOST}${HOST}\r\n`),
    bad("huge headers", `${org}X: ${"x".repeat(100_000)}\r\n\r\n`),
    bad("thousands of headers", `${org}${"X: y\r\n".repeat(20_000)}\r\n`),
    bad("a huge path", `GET /${"x".repeat(100_000)} HTTP/1.1\r\n${HOST}\r\n`),
    bad("both lengths", `${post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    bad("two lengths", `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`),
    bad("a negative length", `${post}Content-Length: -1\r\n\r\n`),
    bad("a length that is none", `${post}Content-Length: 0x2\r\n\r\n{}`),
    bad("a huge length", `${post}Content-Length: 99999999999999999999\r\n\r\n{}`),
    bad("a length beyond the limit", `${post}Content-Length: 999999999999\r\n\r\n{}`),
    bad("an unknown encoding", `${post}Transfer-Encoding: gzip\r\n\r\n`),
    bad("chunked twice", `${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`),
    bad("an obscured encoding", `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`),
    bad("a chunk without a size", `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`),
    bad(
      "a chunk of a huge size",
      `${post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
    ),
    bad("an upgrade", `${org}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`),
    bad("CONNECT", `CONNECT example.com:443 HTTP/1.1\r\n${HOST}\r\n`),
    { name: "a request behind another", bytes: `${org}\r\n${org}\r\n`, answers: [200, 200] },
    {
      name: "a request behind a refused one",
      bytes: `${post}Content-Length: 2\r\n\r\n{}${org}\r\n`,
      answers: [400, 200],
    },
    { name: "an absolute target", bytes: `${org.replace(" /", " http://x/")}\r\n`, answers: [200] },
    { name: "lower-case names", bytes: `${org.replace("Host", "host")}\r\n`, answers: [200] },
    { name: "HTTP/1.0", bytes: `${org.replace("1.1", "1.0")}\r\n`, answers: [200] },
    {
      name: "a comment in a chunk",
      bytes: `${post}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n`,
      answers: [400],
    },
  ];
}

/** Sends what no HTTP client would. */
export async function attack(url: string, apiKey: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const each of attacks(apiKey)) {
    const reply = await exchange(url, each.bytes);
    const fault = faultOf(each, reply);
    if (fault)
      findings.push({
        operation: "raw HTTP",
        fault: `${each.name}: ${fault}`,
        curl: `bytes: ${JSON.stringify(each.bytes.toString().replaceAll(apiKey, "$KEY").slice(0, 500))}`,
        answer: reply.slice(0, 1_500),
      });
  }
  return findings;
}

function faultOf({ answers }: Attack, reply: string): string | undefined {
  const heads = [...reply.matchAll(/HTTP\/1\.1 (\d{3}) [^\r]*\r\n((?:[^\r]+\r\n)*)\r\n/g)];
  const statuses = heads.map(([, status]) => Number(status));
  if (answers) return String(statuses) === String(answers) ? undefined : `answers ${statuses}`;
  if (reply === "") return undefined;
  if (statuses.length !== 1) return `answers ${statuses}`;
  const [[, status = "", headers = ""] = []] = heads;
  // An upgrade that is not wanted is passed over.
  if (/^2/.test(status)) return /Upgrade/.test(reply) ? "upgrades" : undefined;
  if (Number(status) >= 500) return `status ${status}`;
  if (!/content-type: application\/json; charset=utf-8/i.test(headers)) return "no JSON";
  return /\{"error":\{"code":"/.test(reply) ? undefined : "no envelope";
}

/** All that comes until the connection ends, or nothing more does. */
function exchange(url: string, bytes: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((done) => {
    let reply = "";
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const end = () => {
      socket.destroy();
      done(reply);
    };
    socket.setTimeout(PATIENCE_MS, end);
    socket.on("data", (chunk) => {
      reply += chunk;
      socket.setTimeout(300, end);
    });
    socket.on("close", end).on("error", end);
  });
}
