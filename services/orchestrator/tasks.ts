/** Each kind has room of its own, so that slow starts hold up no stop, and failing removals nothing. */
export type Kind = "start" | "end" | "remove";

// Engine calls under way at once; more only makes each slower.
const MOST: Record<Kind, number> = { start: 32, end: 32, remove: 16 };
const REST_MS = 1_000;

interface Task {
  kind: Kind;
  stop: AbortController;
  done: Promise<void>;
}

/** What is under way: one task a sandbox at a time. One that failed rests before it is tried again. */
export class Tasks {
  readonly #underWay = new Map<string, Task>();
  /** Until when, by the process's own clock. */
  readonly #resting = new Map<string, number>();
  readonly #onDone: () => void;
  readonly #onError: (sandboxId: string, error: unknown) => void;
  #stopped = false;

  /** @param onDone called whenever a task has ended and there is room again */
  constructor(onDone: () => void, onError: (sandboxId: string, error: unknown) => void) {
    this.#onDone = onDone;
    this.#onError = onError;
  }

  has(sandboxId: string): boolean {
    return this.#underWay.has(sandboxId) || this.#resting.has(sandboxId);
  }

  /** Sandboxes that are to be left alone now: they are worked on, or rest. */
  busy(): string[] {
    const now = performance.now();
    for (const [id, until] of this.#resting) if (until <= now) this.#resting.delete(id);
    return [...this.#underWay.keys(), ...this.#resting.keys()];
  }

  starting(): string[] {
    return [...this.#underWay].filter(([, { kind }]) => kind === "start").map(([id]) => id);
  }

  /** How many more of a kind may begin. */
  room(kind: Kind): number {
    let room = MOST[kind];
    for (const task of this.#underWay.values()) if (task.kind === kind) room -= 1;
    return room;
  }

  /** Begins a task, but on a sandbox that is busy, or when there is no room. */
  begin(kind: Kind, sandboxId: string, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#stopped || this.has(sandboxId) || this.room(kind) <= 0) return;
    const stop = new AbortController();
    const done = run(stop.signal).catch((error: unknown) => {
      this.#resting.set(sandboxId, performance.now() + REST_MS);
      this.#onError(sandboxId, error);
    });
    this.#underWay.set(sandboxId, { kind, stop, done });
    void done.then(() => {
      this.#underWay.delete(sandboxId);
      this.#onDone();
    });
  }

  abort(sandboxId: string): void {
    this.#underWay.get(sandboxId)?.stop.abort();
  }

  /** Begins nothing more, ends starts, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const tasks = [...this.#underWay.values()];
    for (const { stop } of tasks) stop.abort();
    await Promise.all(tasks.map(({ done }) => done));
  }
}
