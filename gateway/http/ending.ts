import type { FastifyInstance } from "fastify";
import { prepareDrain } from "../../runtime/http-drain.ts";
import { inTime } from "../../runtime/in-time.ts";
import type { Waits } from "../waits.ts";
import type { Ongoing } from "./ongoing.ts";

declare module "fastify" {
  interface FastifyInstance {
    ending: Ending;
  }
}

/** Of a drain, what answers may take to get out that its end has brought about, in milliseconds. */
const LAST_WORDS_MS = 1_000;

/** How the gateway comes to its end. */
export interface Ending {
  /** Everything is still served, but each answer says that it is the last of its connection. */
  announce(): void;
  /**
   * Takes no new connections, tells followers to come back elsewhere, and serves what comes on open connections until all are
   * gone. Shortly before the time is over waits are answered as it stands, and transfers are cut off.
   */
  drain(ms: number): Promise<void>;
}

/** Adds `ending` to the app, whose `close` drains it within a moment where that was not done before. */
export function prepareEnding(app: FastifyInstance, waits: Waits, ongoing: Ongoing): void {
  const connections = prepareDrain(app.server);
  const drain = async (ms: number) => {
    ongoing.drain();
    const gone = connections.drain(ms);
    await within(gone, ms - LAST_WORDS_MS);
    waits.drain();
    ongoing.end();
    await within(gone, LAST_WORDS_MS);
    connections.destroy();
  };
  let drained: Promise<void> | undefined;
  const ending: Ending = {
    announce: connections.announce,
    drain(ms) {
      drained ??= drain(ms);
      return drained;
    },
  };
  app.decorate("ending", ending);
  app.addHook("preClose", () => ending.drain(0));
}

async function within(work: Promise<void>, ms: number): Promise<void> {
  if (ms > 0) await inTime(work, ms).catch(() => undefined);
}
