import type { VolumeKey, VolumeStore } from "../engines/volume-store.ts";
import type { VolumeCalls } from "../volume-calls.ts";

export interface MeasurerOptions {
  volumes: VolumeStore;
  /** Reads the database's clock. */
  readClock: () => Promise<Date>;
  calls: Pick<VolumeCalls, "used">;
}

/** Measures volumes and reports what they hold; each is looked through by one measurement at a time. */
export class Measurer {
  readonly #options: MeasurerOptions;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(options: MeasurerOptions) {
    this.#options = options;
  }

  /**
   * Done when a measurement that began after this call is reported. Those who come while one is under way share the next.
   * @throws EngineUnavailable; ServiceError where it cannot be reported
   */
  measure(volume: VolumeKey): Promise<void> {
    const { volumeId } = volume;
    const current = this.#underWay.get(volumeId);
    if (!current) return this.#begin(volume);
    const known = this.#next.get(volumeId);
    if (known) return known;
    const begin = () => {
      this.#next.delete(volumeId);
      return this.#begin(volume);
    };
    const next = current.then(begin, begin);
    this.#next.set(volumeId, next);
    return next;
  }

  /** Ends what is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled([...this.#underWay.values(), ...this.#next.values()]);
  }

  #begin(volume: VolumeKey): Promise<void> {
    const { volumeId } = volume;
    const done = this.#measure(volume).finally(() => {
      if (this.#underWay.get(volumeId) === done) this.#underWay.delete(volumeId);
    });
    this.#underWay.set(volumeId, done);
    return done;
  }

  async #measure(volume: VolumeKey): Promise<void> {
    const { volumes, readClock, calls } = this.#options;
    const { signal } = this.#stopping;
    signal.throwIfAborted();
    // Before the first file is looked at: what was written by then is in it.
    const measuredAt = await readClock();
    const { bytes } = await volumes.measure(volume, signal);
    await calls.used(volume.volumeId, bytes, measuredAt);
  }
}
