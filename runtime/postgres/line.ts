import { randomBytes } from "node:crypto";
import pg from "pg";

export interface LineOptions {
  url: string;
  /** Names of channels, each an identifier that need not be quoted. */
  channels: readonly string[];
  /** How often the connection proves itself. */
  proveEveryMs: number;
  /** How long a proof may take before the connection counts as lost. */
  silentAfterMs: number;
}

export interface LineEars {
  /** What is committed from now on will be heard. */
  open?(): void;
  heard(channel: string, payload: string): void;
  /** Every notification that was committed before `at` (as performance.now has it) has been heard by now. */
  proven?(at: number): void;
  /** Once, and nothing after it. */
  lost(error: unknown): void;
}

/** A connection that listens, and may say something itself. */
export interface Line {
  /** Outside of every transaction, without waiting for the disk; in the order of the calls. */
  notify(channel: string, payload: string): Promise<void>;
  /** Ends it, without a `lost`. */
  end(): Promise<void>;
}

/**
 * Hears notifications on one connection. Its proof is a notification to itself: PostgreSQL delivers them in the order of
 * their commits, so when it arrives everything that was committed before it was sent has arrived too. A mere query
 * would not do, for a sender is seen as committed a moment before it wakes the listeners.
 */
export function openLine(options: LineOptions, ears: LineEars): Line {
  const { url, channels, proveEveryMs, silentAfterMs } = options;
  const client = new pg.Client({
    connectionString: url,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: silentAfterMs,
  });
  const proofs = `sandgate_proof_${randomBytes(8).toString("hex")}`;
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  let last: Promise<unknown> = Promise.resolve();
  // One statement at a time: pg gives up its own queue.
  const say = (text: string, values?: string[]): Promise<unknown> => {
    const said = last.then(() => client.query(text, values));
    last = said.catch(() => undefined);
    return said;
  };

  const end = async () => {
    over = true;
    clearTimeout(timer);
    await client.end().catch(() => undefined);
  };
  const lose = (error: unknown) => {
    if (over) return;
    void end();
    ears.lost(error);
  };
  let heard = () => {};
  const prove = () => {
    const at = performance.now();
    timer = setTimeout(() => lose(new Error("no notification arrives")), silentAfterMs);
    heard = () => {
      clearTimeout(timer);
      timer = setTimeout(prove, proveEveryMs);
      ears.proven?.(at);
    };
    say(`NOTIFY ${proofs}`).catch(lose);
  };

  client.on("error", lose);
  client.on("end", () => lose(new Error("the connection ended")));
  client.on("notification", ({ channel, payload = "" }) => {
    if (over) return;
    if (channel === proofs) heard();
    else ears.heard(channel, payload);
  });
  const listen = [...channels, proofs].map((channel) => `LISTEN ${channel}`).join("; ");
  client
    .connect()
    // What is said here is nothing that has to survive a crash, so that it waits for no disk.
    .then(() => say(`${listen}; SET synchronous_commit = off`))
    .then(() => {
      if (over) return;
      ears.open?.();
      prove();
    })
    .catch(lose);
  return {
    notify: async (channel, payload) => {
      await say("SELECT pg_notify($1, $2)", [channel, payload]);
    },
    end,
  };
}
