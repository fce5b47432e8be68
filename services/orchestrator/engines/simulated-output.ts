import { EngineUnavailable, type LogChunk, type LogPosition, type LogSource } from "./engine.ts";

/** In characters of text; the oldest output makes room. */
const KEPT = 1024 * 1024;

/** What one simulated machine has written, with its readers. */
export class SimulatedOutput {
  /** Of a machine that there is not. */
  static readonly NONE = SimulatedOutput.#nothing();
  /** A reader pulls from behind what it has seen: `#chunks[i]` is number `#dropped + i`. */
  readonly #chunks: LogChunk[] = [];
  readonly #last: LogPosition = { stdout: 0n, stderr: 0n };
  readonly #waiting = new Set<() => void>();
  #dropped = 0;
  #kept = 0;
  #ended = false;
  #breaks = 0;

  static #nothing(): SimulatedOutput {
    const none = new SimulatedOutput();
    none.end();
    return none;
  }

  get readers(): number {
    return this.#waiting.size;
  }

  write(source: LogSource, text: string): void {
    const stream = source === "stdout" || source === "output" ? "stdout" : "stderr";
    const time = BigInt(Date.now()) * 1_000_000n;
    const last = this.#last[stream];
    const offset = time > last ? time : last + 1n;
    this.#last[stream] = offset;
    this.#chunks.push({ source, stream, offset, time, text });
    this.#kept += text.length;
    while (this.#kept > KEPT && this.#chunks.length > 1) {
      this.#kept -= this.#chunks.shift()?.text.length ?? 0;
      this.#dropped += 1;
    }
    this.#wake();
  }

  /** The machine is down: readers end when they have read everything. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Every reader fails, as if the engine had gone and stayed away. */
  breakOff(): void {
    this.#breaks += 1;
    this.#wake();
  }

  async *read(after: LogPosition, signal: AbortSignal): AsyncGenerator<LogChunk> {
    const breaks = this.#breaks;
    const onAbort = () => this.#wake();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      for (let next = 0; !signal.aborted; ) {
        if (breaks !== this.#breaks) throw new EngineUnavailable("the simulated engine went away");
        next = Math.max(next, this.#dropped);
        const chunk = this.#chunks[next - this.#dropped];
        if (chunk) {
          next += 1;
          if (chunk.offset > after[chunk.stream]) yield chunk;
        } else if (this.#ended) return;
        else await this.#more();
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
    });
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
