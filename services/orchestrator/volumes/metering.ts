import { startRounds } from "../../../runtime/rounds.ts";
import { abortable } from "../../../runtime/rpc/abort.ts";
import { seldom } from "../../../runtime/seldom.ts";
import type { Log } from "../context.ts";
import { EngineUnavailable } from "../engines/engine.ts";
import type { VolumeKey } from "../engines/volume-store.ts";
import type { Store } from "../store.ts";
import { NOTED_SECS } from "./changes.ts";
import type { Measurer } from "./measurer.ts";

/** How often volumes are measured that do not change. */
const IDLE_SECS = 3 * 3_600;
const ROUND_MS = 5_000;
const MOST = 100;
/** How long one that could not be measured is left alone. */
const REST_MS = 60_000;
/** How long the others wait for one; it goes on beside them then. */
const PATIENCE_MS = 60_000;

export interface MeteringOptions {
  store: Pick<Store, "noteMounted" | "listToMeasure">;
  measurer: Pick<Measurer, "measure">;
  log: Log;
  /** How often volumes are measured that change. */
  changedSecs: number;
  /** Between looks, for tests. */
  roundMs?: number;
  /** How long the others wait for one. */
  patienceMs?: number;
}

/**
 * Measures volumes in the background, one after the other: those that change often, others every few hours, and
 * those that a machine had mounted when it is gone.
 */
export class Metering {
  readonly #options: MeteringOptions;
  readonly #rounds: { stop(): Promise<void> };
  readonly #failed: (error: unknown) => void;
  /** Volumes that machines may write, at the last look. */
  #mounted: ReadonlySet<string> = new Set();
  /** Those that none has any more. */
  readonly #soon = new Set<string>();
  /** Until when one is left alone, by the process's own clock. */
  readonly #resting = new Map<string, number>();
  /** Those that are measured still, and are not waited for any more. */
  readonly #late = new Set<string>();
  readonly #stopping = new AbortController();

  constructor(options: MeteringOptions) {
    const { log } = options;
    this.#options = options;
    this.#failed = seldom((err, unsaid) =>
      log.warn({ err, ...unsaid }, "could not measure a volume"),
    );
    const complain = seldom((err, unsaid) =>
      log.warn({ err, ...unsaid }, "could not look for volumes to measure"),
    );
    this.#rounds = startRounds(() => this.#round(), complain);
  }

  /** Begins no further measurement; one that is under way tells the truth whoever leads, and is not waited for. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#rounds.stop();
  }

  async #round(): Promise<number> {
    const { store, roundMs = ROUND_MS, changedSecs } = this.#options;
    const mounted = new Set(await store.noteMounted(NOTED_SECS));
    for (const id of this.#mounted) if (!mounted.has(id)) this.#soon.add(id);
    this.#mounted = mounted;
    const query = { limit: MOST, changedSecs, idleSecs: IDLE_SECS };
    const [soon, resting] = [[...this.#soon], this.#restingNow()];
    const due = await store.listToMeasure({ ...query, soon, resting });
    // One that is listed no more was deleted meanwhile.
    if (due.length < MOST) this.#soon.clear();
    for (const volume of due) {
      if (this.#stopping.signal.aborted || !(await this.#measure(volume))) break;
    }
    return due.length < MOST ? roundMs : 0;
  }

  /** @returns whether it makes sense to go on with another one */
  async #measure(volume: VolumeKey): Promise<boolean> {
    const { volumeId } = volume;
    const { measurer, patienceMs = PATIENCE_MS } = this.#options;
    const patience = AbortSignal.timeout(patienceMs);
    const measured = measurer.measure(volume);
    try {
      await abortable(measured, AbortSignal.any([this.#stopping.signal, patience]));
      this.#soon.delete(volumeId);
      return true;
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      if (patience.aborted) return this.#leave(volumeId, measured);
      this.#failed(error);
      // An engine that is away is waited for; a volume that it cannot read holds up no other.
      if (error instanceof EngineUnavailable) return false;
      this.#resting.set(volumeId, performance.now() + REST_MS);
      return true;
    }
  }

  #leave(volumeId: string, measured: Promise<void>): true {
    const over = () => this.#late.delete(volumeId);
    this.#late.add(volumeId);
    measured.then(over, (error: unknown) => {
      over();
      if (!this.#stopping.signal.aborted) this.#failed(error);
    });
    return true;
  }

  #restingNow(): string[] {
    const now = performance.now();
    for (const [id, until] of this.#resting) if (until <= now) this.#resting.delete(id);
    return [...this.#resting.keys(), ...this.#late];
  }
}
