import type { VolumeKey, VolumeStore } from "../engines/volume-store.ts";
import { shareLooks } from "../share.ts";
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
  readonly #measure: (orgId: string, volumeId: string) => Promise<void>;
  readonly #underWay = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(options: MeasurerOptions) {
    this.#options = options;
    this.#measure = shareLooks((orgId, volumeId) => this.#look({ orgId, volumeId }));
  }

  /**
   * Done when a measurement that began after this call is reported. Those who come while one is under way share the next.
   * @throws EngineUnavailable; ServiceError where it cannot be reported
   */
  async measure({ orgId, volumeId }: VolumeKey): Promise<void> {
    const measured = this.#measure(orgId, volumeId);
    this.#underWay.add(measured);
    try {
      await measured;
    } finally {
      this.#underWay.delete(measured);
    }
  }

  /** Ends what is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#underWay);
  }

  async #look(volume: VolumeKey): Promise<void> {
    const { volumes, readClock, calls } = this.#options;
    const { signal } = this.#stopping;
    signal.throwIfAborted();
    // Before the first file is looked at: what was written by then is in it.
    const measuredAt = await readClock();
    const { bytes } = await volumes.measure(volume, signal);
    await calls.used(volume.volumeId, bytes, measuredAt);
  }
}
