import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import { type Sandbox, SandboxStatus } from "../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxChange, SandboxService } from "../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { type ErrorCode, rateLimited, toPublicError } from "./errors.ts";
import { Waiter } from "./waiter.ts";
import { watchSandboxes } from "./watch.ts";

const SETTLED = new Set<number>([
  SandboxStatus.RUNNING,
  SandboxStatus.STOPPED,
  SandboxStatus.FAILED,
]);

const AWAY = new Set<ErrorCode>(["service_unavailable", "deadline_exceeded"]);
const READ_AGAIN_MS = 500;
/** Where all of them are to look, so many do at a time, for others call the services too. */
const LOOKS_AT_ONCE = 100;
const LOOKS_EVERY_MS = 50;

/** A start whose outcome a client waits for. */
export interface Wait {
  /** Admits the start and returns whose it is; not called where no place is free. Undefined: there is nothing to wait for. */
  admit(): Promise<string | undefined>;
  /** @throws where the sandbox is gone */
  read(id: string): Promise<Sandbox>;
  budgetMs: number;
  /** Aborted when the client hangs up. */
  signal: AbortSignal;
}

/** Held requests, woken by one stream of changes; a wake only says that it is time to read again. */
export class Waits {
  readonly #places: number;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #end = new AbortController();
  #held = 0;

  /** @param places how many requests may be held at once */
  constructor(places: number) {
    this.#places = places;
  }

  /** Begins to watch; once. */
  start(client: Client<typeof SandboxService>, log: FastifyBaseLogger, backoffMs = 100): void {
    void watchSandboxes(client, {
      changed: (change) => this.#changed(change),
      reset: () => this.#wakeAll(),
      signal: this.#end.signal,
      log,
      backoffMs,
    });
  }

  /** How many places are taken. */
  get held(): number {
    return this.#held;
  }

  /**
   * Takes a place, admits the start, and returns the sandbox as it is when it is running, failed
   * or stopped, when the budget is spent, or when the gateway has drained; undefined where there was nothing to wait for.
   * @throws PublicError (rate_limited) where no place is free; whatever `admit` and `read` throw
   */
  async hold(wait: Wait): Promise<Sandbox | undefined> {
    if (this.#held >= this.#places) throw rateLimited();
    this.#held += 1;
    try {
      const id = await wait.admit();
      return id === undefined ? undefined : await this.#readUntilSettled(id, wait);
    } finally {
      this.#held -= 1;
    }
  }

  /** Answers every wait with the sandbox as it is, and stops watching. */
  drain(): void {
    this.#end.abort();
    for (const waiter of this.#all()) waiter.finish();
  }

  async #readUntilSettled(id: string, { read, budgetMs, signal }: Wait): Promise<Sandbox> {
    const waiter = new Waiter(this.#end.signal.aborted ? 0 : budgetMs, signal);
    this.#join(id, waiter);
    try {
      for (;;) {
        const sandbox = await readIfThere(read, id, waiter);
        if (sandbox && (SETTLED.has(sandbox.status) || waiter.over)) return sandbox;
        if (!sandbox) waiter.wakeIn(READ_AGAIN_MS);
        await waiter.woken();
      }
    } finally {
      this.#leave(id, waiter);
    }
  }

  /** Wakes whom the change may be the end of the wait for. */
  #changed({ sandboxId, status, destroyed }: SandboxChange): void {
    if (destroyed || SETTLED.has(status)) this.#wake(this.#waiters.get(sandboxId) ?? []);
  }

  #join(id: string, waiter: Waiter): void {
    const others = this.#waiters.get(id);
    if (others) others.add(waiter);
    else this.#waiters.set(id, new Set([waiter]));
  }

  #leave(id: string, waiter: Waiter): void {
    waiter.dispose();
    const all = this.#waiters.get(id);
    all?.delete(waiter);
    if (all?.size === 0) this.#waiters.delete(id);
  }

  #wake(waiters: Iterable<Waiter>): void {
    for (const waiter of waiters) waiter.wake();
  }

  #wakeAll(): void {
    let count = 0;
    for (const waiter of this.#all()) {
      const turn = Math.floor(count / LOOKS_AT_ONCE);
      if (turn === 0) waiter.wake();
      else waiter.wakeIn(turn * LOOKS_EVERY_MS);
      count += 1;
    }
  }

  *#all(): Generator<Waiter> {
    for (const waiters of this.#waiters.values()) yield* waiters;
  }
}

/**
 * What the service says; undefined where it is away and there is still time to ask again: what was admitted goes on
 * without it.
 */
async function readIfThere(
  read: Wait["read"],
  id: string,
  waiter: Waiter,
): Promise<Sandbox | undefined> {
  try {
    return await read(id);
  } catch (error) {
    if (waiter.over || !AWAY.has(toPublicError(error).code)) throw error;
    return undefined;
  }
}
