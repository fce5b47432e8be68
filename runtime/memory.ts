import { setFlagsFromString } from "node:v8";

/**
 * Files pass through memory that lies outside V8's heap. By default V8 looks through its whole heap for every 32 MiB or so of
 * that; with this, as often as for what lies inside. It is paid for with memory: some tens of MiB while files pass.
 */
export function countBuffersAsHeap(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}
