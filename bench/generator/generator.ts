import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Job, Outcome } from "./job.ts";

/** The process that makes the load. */
export class Generator {
  readonly #child: ChildProcess = fork(join(import.meta.dirname, "main.ts"));

  /** @throws Error where it could not, or any answer was not as it should be */
  async run(job: Job): Promise<Outcome> {
    const answered = once(this.#child, "message");
    this.#child.send(job);
    const [outcome] = (await answered) as [Outcome | { error: string }];
    if ("error" in outcome) throw new Error(`the generator failed: ${outcome.error}`);
    const [other] = Object.entries(outcome.others);
    if (other) throw new Error(`${other[1]} answers with status ${other[0]}`);
    return outcome;
  }

  stop(): void {
    this.#child.disconnect();
  }
}
