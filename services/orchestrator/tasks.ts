/** Each kind has room of its own, so that slow starts hold up no stop, and failing removals nothing. */
export type Kind = "start" | "end" | "remove";

// Engine calls under way at once; more only makes each slower.
const MOST: Record<Kind, number> = { start: 32, end: 32, remove: 16 };
const REST_MS = 1_000;

/** How a task ended that did not fail. */
export type Outcome = "done" | "rest";

type OnError = (kind: Kind, sandboxId: string, error: unknown) => void;

interface Task {
  kind: Kind;
  stop: AbortController;
  done: Promise<void>;
}

/**
 * What is under way: one task a sandbox at a time. One that failed rests before its kind is tried again; another
 * kind need not wait for that.
 */
export class Tasks {
  readonly #underWay = new Map<string, Task>();
  /** Until when, by the process's own clock. */
  readonly #resting: Record<Kind, Map<string, number>> = {
    start: new Map(),
    end: new Map(),
    remove: new Map(),
  };
  readonly #onDone: () => void;
  readonly #onError: OnError;
  #stopped = false;

  /** @param onDone called whenever a task has ended and there is room again */
  constructor(onDone: () => void, onError: OnError) {
    this.#onDone = onDone;
    this.#onError = onError;
  }

  has(sandboxId: string): boolean {
    return this.#underWay.has(sandboxId);
  }

  /** Sandboxes on which no such task is to begin now: they are worked on, or rest from one. */
  busy(kind: Kind): string[] {
    const now = performance.now();
    const resting = this.#resting[kind];
    for (const [id, until] of resting) if (until <= now) resting.delete(id);
    return [...this.#underWay.keys(), ...resting.keys()];
  }

  starting(): string[] {
    return [...this.#underWay].filter(([, { kind }]) => kind === "start").map(([id]) => id);
  }

  /** How many of each kind are. */
  underWay(): Record<Kind, number> {
    const counts = { start: 0, end: 0, remove: 0 };
    for (const { kind } of this.#underWay.values()) counts[kind] += 1;
    return counts;
  }

  /** How many more of a kind may begin. */
  room(kind: Kind): number {
    return MOST[kind] - this.underWay()[kind];
  }

  /** Begins a task, unless its sandbox is busy or there is no room; one that comes to "rest" is tried later. */
  begin(kind: Kind, sandboxId: string, run: (signal: AbortSignal) => Promise<Outcome>): void {
    const resting = this.#resting[kind];
    if (this.#stopped || this.has(sandboxId) || this.room(kind) <= 0) return;
    if ((resting.get(sandboxId) ?? 0) > performance.now()) return;
    const stop = new AbortController();
    const rest = () => resting.set(sandboxId, performance.now() + REST_MS);
    const done = run(stop.signal).then(
      (outcome) => {
        if (outcome === "rest") rest();
      },
      (error: unknown) => {
        rest();
        this.#onError(kind, sandboxId, error);
      },
    );
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
