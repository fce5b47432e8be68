import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Connection, HttpTarget } from "./job.ts";

const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const STATUS_AT = 9;

/** Connections on which nothing is done that a load can do without: an answer's status and length are all that is read of it. */
export async function openHttp({ port, requests }: HttpTarget, count: number) {
  const bytes = requests.map((request) => Buffer.from(request, "latin1"));
  let next = 0;
  const take = () => bytes[next++ % bytes.length] as Buffer;
  return Promise.all(Array.from({ length: count }, () => open(port, take)));
}

async function open(port: number, take: () => Buffer): Promise<Connection> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  let told: ((status: number) => void) | undefined;
  readAnswers(socket, (status) => told?.(status));
  return {
    send: (done) => {
      told = done;
      socket.write(take());
    },
    close: () => {
      told = undefined;
      socket.destroy();
    },
  };
}

/** Tells the status of each answer when all of it is there; -1 once the connection broke. */
function readAnswers(socket: Socket, tell: (status: number) => void): void {
  let held: Buffer | undefined;
  let wanted = 0;
  socket.on("data", (chunk: Buffer) => {
    held = held ? Buffer.concat([held, chunk]) : chunk;
    if (held.length < wanted) return;
    wanted = lengthOf(held);
    if (held.length < wanted) return;
    const status = Number(held.toString("latin1", STATUS_AT, STATUS_AT + 3));
    held = undefined;
    wanted = 0;
    tell(status);
  });
  socket.on("error", () => undefined);
  socket.on("close", () => tell(-1));
}

/** Bytes of the answer that begins here, head and body; infinity: not known yet. */
function lengthOf(bytes: Buffer): number {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return Number.POSITIVE_INFINITY;
  const head = bytes.toString("latin1", 0, end);
  const length = LENGTH.exec(head)?.[1];
  if (length !== undefined) return end + HEAD_END.length + Number(length);
  // Of chunks only the end is looked for: one request at a time, so nothing comes behind it.
  const ended = bytes.toString("latin1", bytes.length - 5) === "0\r\n\r\n";
  return ended ? bytes.length : Number.POSITIVE_INFINITY;
}
