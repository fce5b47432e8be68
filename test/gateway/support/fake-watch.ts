import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { SandboxStatus } from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import {
  type WatchSandboxesResponse,
  WatchSandboxesResponseSchema,
} from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";

/** A stream of changes that can break off, and be resumed from where it was or not at all. */
export class FakeWatch {
  /** Cursors that streams were opened with. */
  readonly opened: string[] = [];
  /** Whether a cursor still means something. */
  resumable = true;
  readonly #history: WatchSandboxesResponse[] = [];
  #epoch = 1;
  #wake = Promise.withResolvers<void>();

  changed(sandboxId: string, status: SandboxStatus, destroyed = false): void {
    const cursor = `${this.#epoch}.${this.#history.length + 1}`;
    const value = { sandboxId, status, destroyed };
    this.#history.push(
      create(WatchSandboxesResponseSchema, { cursor, event: { case: "change", value } }),
    );
    this.#ring();
  }

  /** Breaks every open stream. */
  breakOff(): void {
    this.#epoch += 1;
    this.#ring();
  }

  async *open(cursor: string, signal: AbortSignal): AsyncGenerator<WatchSandboxesResponse> {
    this.opened.push(cursor);
    const epoch = this.#epoch;
    const resumes = cursor !== "" && this.resumable;
    let next = resumes ? Number(cursor.split(".")[1]) : this.#history.length;
    if (!resumes) yield this.#reset(next);
    signal.addEventListener("abort", () => this.#ring());
    while (!signal.aborted) {
      if (epoch !== this.#epoch) throw new ConnectError("gone", Code.Unavailable);
      const message = this.#history[next];
      if (!message) await this.#wake.promise;
      else {
        next += 1;
        yield message;
      }
    }
  }

  #reset(at: number): WatchSandboxesResponse {
    const cursor = `${this.#epoch}.${at}`;
    return create(WatchSandboxesResponseSchema, { cursor, event: { case: "reset", value: {} } });
  }

  #ring(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}
