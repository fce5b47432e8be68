import { randomUUID } from "node:crypto";
import type { Caller } from "../../../../runtime/caller.ts";
import { ServiceError } from "../../../../runtime/errors.ts";
import type { VolumeKey } from "../../engines/volume-store.ts";
import type { FilesContext } from "./context.ts";

const MIB = 1024n * 1024n;
/** What is asked for first, and most that is asked for ahead, where it is not known how much will come. */
const FIRST_STEP = 4n * MIB;
const LAST_STEP = 256n * MIB;
/** How often a promise is asked for again, so that it does not expire during a long write. */
const RENEW_MS = 60_000;

/** Room that a write is promised before it takes it. Where nothing caps its volume nobody is asked. */
export class Room {
  readonly #ctx: FilesContext;
  readonly #caller: Caller;
  readonly #volume: VolumeKey;
  readonly #capped: boolean;
  readonly #writeId = randomUUID();
  #promised: bigint | undefined;
  /** How much is asked for ahead the next time. */
  #ahead = FIRST_STEP;
  #askedAt = 0;
  /** Bytes that are admitted in all. */
  #taken = 0n;

  constructor(ctx: FilesContext, caller: Caller, volume: VolumeKey, capped: boolean) {
    this.#ctx = ctx;
    this.#caller = caller;
    this.#volume = volume;
    this.#capped = capped;
  }

  /** Bytes that are admitted in all. */
  get taken(): bigint {
    return this.#taken;
  }

  /**
   * Asks for so many bytes in all, and no more than that.
   * @throws ServiceError QUOTA_EXCEEDED
   */
  async need(bytes: bigint): Promise<void> {
    if (this.#capped) await this.#insist(bytes);
  }

  /**
   * Admits that so much is written in all.
   * @throws ServiceError QUOTA_EXCEEDED
   */
  readonly admit = async (bytes: bigint): Promise<void> => {
    if (this.#capped) await this.#cover(bytes);
    if (bytes > this.#taken) this.#taken = bytes;
  };

  /** The write is over, and holds so many bytes. A promise that cannot be given back now runs out by itself. */
  async settle(bytes: bigint): Promise<void> {
    if (this.#promised === undefined) return;
    try {
      await this.#ctx.calls.settle(this.#caller, this.#writeId, bytes);
    } catch (err) {
      const fields = { volume_id: this.#volume.volumeId, org_id: this.#volume.orgId };
      this.#ctx.log.warn({ err, ...fields }, "could not settle the room of a write");
    }
  }

  async #cover(bytes: bigint): Promise<void> {
    const promised = this.#promised ?? 0n;
    if (bytes <= promised) {
      if (performance.now() - this.#askedAt > RENEW_MS) await this.#ask(promised);
      return;
    }
    const step = promised + this.#ahead;
    const isAhead = step > bytes && (await this.#tryFor(step));
    // Near the end of the room less and less, down to what is needed.
    this.#ahead = isAhead ? least(this.#ahead * 2n, LAST_STEP) : most(this.#ahead / 4n, MIB);
    if (!isAhead) await this.#insist(bytes);
  }

  async #tryFor(bytes: bigint): Promise<boolean> {
    try {
      await this.#ask(bytes);
      return true;
    } catch (error) {
      if (!isQuota(error)) throw error;
      return false;
    }
  }

  // Files may have been removed since the last measurement.
  async #insist(bytes: bigint): Promise<void> {
    try {
      await this.#ask(bytes);
    } catch (error) {
      if (!isQuota(error)) throw error;
      await this.#measureAnew(error);
      await this.#ask(bytes);
    }
  }

  async #ask(bytes: bigint): Promise<void> {
    // Also where the answer is lost, it may have been promised.
    this.#promised ??= 0n;
    await this.#ctx.calls.reserve(this.#caller, this.#volume.volumeId, this.#writeId, bytes);
    this.#promised = bytes;
    this.#askedAt = performance.now();
  }

  async #measureAnew({ metadata }: ServiceError): Promise<void> {
    const { store, measurer } = this.#ctx;
    if (metadata.quota !== "max_total_storage_gib") return measurer?.measure(this.#volume);
    // The room may be in any of the organization's volumes.
    for (const volume of await store.listChangedOf(this.#volume.orgId))
      await measurer?.measure(volume);
  }
}

function isQuota(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.reason === "QUOTA_EXCEEDED";
}

function most(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
