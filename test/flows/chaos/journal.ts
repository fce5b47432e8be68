import { VolumeBook } from "./volumes/book.ts";

/** What a client asked for, and what it knows of that. */
export type Action = "create" | "start" | "stop" | "rename" | "destroy";

/**
 * One request that would change something. `acked`: it was answered with success, so it took effect once. `refused`: it
 * took none. `doubt`: the answer was lost or says too little, so it took effect once or not at all.
 */
export interface Attempt {
  client: string;
  /** Counts the client's operations; tries of one operation share it. */
  operation: number;
  action: Action;
  outcome: "acked" | "refused" | "doubt";
  /** Of the sandbox, as far as it is known: from the request, or from the answer. */
  sandboxId: string | undefined;
  /** A create that also starts. */
  starts: boolean;
  /** The name that a rename gives. */
  name: string | undefined;
  /** The idempotency key that all tries of the operation share. */
  idempotencyKey?: string | undefined;
  /** The answer comes when the sandbox runs, or has failed. */
  waits?: boolean;
  /** It was asked after the outcome was known, with the same key. */
  repeats?: boolean;
  /** The answer is said to be an earlier one. */
  replayed?: boolean;
  /** Of an answer that is final, in JSON. */
  body?: string;
  /** Status and code of the answer, or why there was none. */
  answer: string;
  /** Unix milliseconds. */
  at: number;
}

/** Everything that the clients of a run did. */
export class Journal {
  readonly attempts: Attempt[] = [];
  /** Answers that no client should ever get. */
  readonly strange: string[] = [];
  readonly book = new VolumeBook();
  readonly #counts = new Map<string, number>();

  add(attempt: Attempt): void {
    this.attempts.push(attempt);
    this.count(`${attempt.action} ${attempt.outcome}`);
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  /** How often what happened, by name. */
  counts(): [string, number][] {
    return [...this.#counts].sort(([a], [b]) => a.localeCompare(b));
  }
}
