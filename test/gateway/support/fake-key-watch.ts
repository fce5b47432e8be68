import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchKeysResponseSchema } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { comeTrue } from "../../support/come-true.ts";

type Message = MessageInitShape<typeof WatchKeysResponseSchema>;

/** A stream of key changes that is current when it is said to be, and can break off. */
export class FakeKeyWatch {
  /** How many streams are open. */
  open = 0;
  #up = true;
  readonly #messages: Message[] = [];
  #taken = 0;
  #wake = Promise.withResolvers<void>();

  async current(ageMs = 0): Promise<void> {
    await this.#send({ event: { case: "current", value: { ageMs } } });
  }

  /** @param apiKeyId empty: every key of the organization */
  async changed(orgId: string, apiKeyId = ""): Promise<void> {
    await this.#send({ event: { case: "changed", value: { orgId, apiKeyId } } });
  }

  /** Breaks every stream off, and lets none be opened until it is restored. */
  async breakOff(): Promise<void> {
    this.#up = false;
    this.#ring();
    await comeTrue(() => this.open === 0);
  }

  /** Lets a stream be opened again. */
  async restore(): Promise<void> {
    this.#up = true;
    await comeTrue(() => this.open === 1);
  }

  async *stream(signal: AbortSignal): AsyncGenerator<Message> {
    let next = this.#messages.length;
    signal.addEventListener("abort", () => this.#ring());
    this.open += 1;
    try {
      while (!signal.aborted) {
        if (!this.#up) throw new ConnectError("gone", Code.Unavailable);
        const message = this.#messages[next];
        if (!message) await this.#wake.promise;
        else {
          next += 1;
          yield message;
          // Whoever asks for the next has done with this one.
          this.#taken = next;
        }
      }
    } finally {
      this.open -= 1;
    }
  }

  /** Returns when it was taken in. */
  async #send(message: Message): Promise<void> {
    await comeTrue(() => this.open === 1);
    this.#messages.push(message);
    this.#ring();
    await comeTrue(() => this.#taken === this.#messages.length);
  }

  #ring(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}
