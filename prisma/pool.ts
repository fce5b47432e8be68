import pg from "pg";
import { currentCall } from "../runtime/current-call.ts";
import { ServiceError } from "../runtime/errors.ts";
import { Turns } from "../runtime/turns.ts";

/** What a pool has to do now. */
export interface PoolNumbers {
  /** Most connections. */
  size: number;
  /** Connections with a statement or a transaction on them, or being made for one. */
  inUse: number;
  /** Connections that are open and have nothing to do. */
  idle: number;
  /** Statements that wait for a connection. */
  waiting: number;
  /** Statements that found no room to wait, or waited too long, since the start. */
  refused: number;
}

export interface PoolOptions extends pg.PoolConfig {
  max: number;
  /** Most statements that wait for a connection. */
  queueSize: number;
  /** How long one waits, in milliseconds. */
  queueTimeoutMs: number;
  /** Told whenever a statement is refused. */
  onRefused?: ((error: Error) => void) | undefined;
}

/** Connections that no organization has alone; smaller pools have none to keep back. */
const KEPT_BACK = 2;

/**
 * pg's pool with a queue that has an end, and in which organizations take turns. A read whose call is over does not wait
 * on. Whoever is refused gets ServiceError SERVICE_UNAVAILABLE.
 */
export class BoundedPool extends pg.Pool {
  readonly #size: number;
  readonly #turns: Turns;

  constructor({ queueSize, queueTimeoutMs, onRefused, ...config }: PoolOptions) {
    super(config);
    this.#size = config.max;
    this.#turns = new Turns({
      atOnce: config.max,
      atOnceOfOne: Math.max(config.max - KEPT_BACK, Math.ceil(config.max / 2)),
      waiting: queueSize,
      patienceMs: queueTimeoutMs,
      refuse: (why) => {
        const error = refusal(why);
        onRefused?.(error);
        return error;
      },
    });
  }

  get numbers(): PoolNumbers {
    const { held, waiting, refused } = this.#turns.numbers;
    return { size: this.#size, inUse: held, idle: this.idleCount, waiting, refused };
  }

  // `query` of the base class comes here too, with a callback.
  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connected = this.#connect();
    if (!callback) return connected;
    connected.then(
      (client) => callback(undefined, client, client.release),
      (error: Error) => callback(error, undefined, () => undefined),
    );
    return undefined;
  }

  async #connect(): Promise<pg.PoolClient> {
    const { owner, signal } = currentCall() ?? {};
    const leave = await this.#turns.take({ owner, signal });
    try {
      const client = await super.connect();
      const { release } = client;
      client.release = (error) => {
        release(error);
        leave();
      };
      return client;
    } catch (error) {
      leave();
      throw error;
    }
  }
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: Error | boolean) => void,
) => void;

function refusal(why: "full" | "late"): ServiceError {
  const sentences = {
    full: "the database is busy: no more statements may wait for a connection",
    late: "the database is busy: no connection came free in time",
  };
  return new ServiceError("SERVICE_UNAVAILABLE", sentences[why]);
}
