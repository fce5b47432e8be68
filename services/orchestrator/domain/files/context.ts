import type { Log } from "../../context.ts";
import type { VolumeStore } from "../../engines/volume-store.ts";
import type { Store } from "../../store.ts";
import type { VolumeCalls } from "../../volume-calls.ts";
import type { Changes } from "../../volumes/changes.ts";
import type { Measurer } from "../../volumes/measurer.ts";

/** What the verbs on files work with. */
export interface FilesContext {
  store: Pick<
    Store,
    "findVolume" | "listChangedOf" | "intend" | "holdIntent" | "settleIntent" | "withdrawIntent"
  >;
  /** Undefined: the engine has no volumes. */
  volumes: VolumeStore | undefined;
  calls: Pick<VolumeCalls, "reserve" | "settle">;
  measurer: Pick<Measurer, "measure"> | undefined;
  changes: Pick<Changes, "note">;
  /** Keyed hash of what a request is, kept with its idempotency key. */
  hashRequest: (sha256: Uint8Array) => Uint8Array;
  /** Says why the engine's files cannot be had. */
  complain: (error: unknown) => void;
  log: Pick<Log, "warn">;
}
