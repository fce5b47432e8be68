import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP port before another one: what passes can be slowed down, or not come through at all. */
export interface DelayLine {
  port: number;
  /** From now on, what is sent comes that much later, each way. */
  delay(ms: number): void;
  /** Nothing comes through, and nobody is told. */
  silence(): void;
  /** All comes through at once again, also what was held back. */
  resume(): void;
  close(): Promise<void>;
}

/** @param target port on this machine; it need not be there yet */
export async function delayLine(target: number): Promise<DelayLine> {
  const open = new Set<Socket>();
  let [delayMs, silent] = [0, false];
  let held: (() => void)[] = [];
  const pass = (send: () => void) => {
    if (silent) held.push(send);
    else if (delayMs === 0) send();
    else setTimeout(() => (silent ? held.push(send) : send()), delayMs).unref();
  };
  const pipe = (from: Socket, to: Socket) => {
    open.add(from);
    from
      .on("data", (data) => pass(() => void to.write(data)))
      .on("error", () => undefined)
      .on("close", () => {
        open.delete(from);
        pass(() => to.destroy());
      });
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    pipe(client, upstream);
    pipe(upstream, client);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    delay: (ms) => {
      delayMs = ms;
    },
    silence: () => {
      silent = true;
    },
    resume: () => {
      [delayMs, silent] = [0, false];
      const sends = held;
      held = [];
      for (const send of sends) send();
    },
    close: async () => {
      server.close();
      for (const socket of open) socket.destroy();
      held = [];
      await once(server, "close");
    },
  };
}
