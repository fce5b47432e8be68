import { once } from "node:events";
import { createServer } from "node:net";

// Below those that the kernel gives away by itself, so that no connection and no server on port 0 takes one
// between the answer and its use.
const FIRST = 12_000;
const SLICE = 1_000;
const SLICES = 18;

/** Every test process that runs now has ports of its own; the benches use the first ones. */
const slice = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % SLICES) * SLICE;
let next = Math.floor(Math.random() * SLICE);

/** A TCP port of this machine that nobody listens on, and that nobody here is given again. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < SLICE; tries++) {
    const port = slice + (next++ % SLICE);
    if (await isFree(port)) return port;
  }
  throw new Error(`somebody listens on every port from ${slice} on`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
