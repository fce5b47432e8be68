import type { Connection } from "./job.ts";

/** What is told of each answer: its status, and the milliseconds that it took. */
export type Tell = (status: number, ms: number) => void;

/** Each connection asks again as soon as it is answered, until the time is over. */
export function closedLoop(connections: Connection[], seconds: number, tell: Tell): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = performance.now() + seconds * 1_000;
  let open = connections.length;
  const ask = (connection: Connection) => {
    const began = performance.now();
    if (began >= end) {
      open -= 1;
      if (open === 0) resolve();
      return;
    }
    connection.send((status) => {
      tell(status, performance.now() - began);
      // A broken connection is an error of its own, and asks no more.
      if (status > -1) ask(connection);
      else if (--open === 0) resolve();
    });
  };
  for (const connection of connections) ask(connection);
  return promise;
}

/**
 * Requests fall due at a steady rate, whether or not earlier ones are answered; one that finds no free connection waits for one, and
 * counts from when it was due.
 * @param late told by how many milliseconds the generator itself was late
 */
export async function openLoop(
  connections: Connection[],
  { seconds, rate }: { seconds: number; rate: number },
  tell: Tell,
  late: (ms: number) => void,
): Promise<void> {
  const began = performance.now();
  const total = Math.floor(seconds * rate);
  const free = [...connections];
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  let ended = 0;
  const pump = (fromTimer: boolean) => {
    const now = performance.now();
    while (begun < total) {
      const due = began + (begun * 1_000) / rate;
      if (due > now) return;
      const connection = free.pop();
      if (!connection) return;
      begun += 1;
      if (fromTimer) late(now - due);
      connection.send((status) => {
        tell(status, performance.now() - due);
        if (status > -1) free.push(connection);
        if (++ended === total) return resolve();
        pump(false);
      });
    }
  };
  const timer = setInterval(() => pump(free.length > 0), 1);
  await promise;
  clearInterval(timer);
}
