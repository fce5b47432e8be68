import type { Logger } from "../log.ts";
import { seldom } from "../seldom.ts";
import { readTls, type TlsFiles, type TlsMaterial } from "./certificate.ts";

/** How often the files are looked at, in milliseconds. */
const LOOK_MS = 2_000;

/** A certificate with its key, as the files have it by now. */
export interface WatchedTls {
  readonly current: TlsMaterial;
  /** Calls back with what has taken the place of `current`. */
  onChange(listener: (material: TlsMaterial) => void): void;
  /** Looks no more. */
  stop(): void;
}

/**
 * Reads the files, and again whenever their contents change, by whatever means. What cannot be used, such as a
 * certificate whose key is not there yet, is logged, and what was there before stays.
 * @throws StartupError where they cannot be used now
 */
export async function watchTls(
  files: TlsFiles,
  log: Pick<Logger, "info" | "error">,
  lookMs = LOOK_MS,
): Promise<WatchedTls> {
  let current = await readTls(files);
  const listeners: ((material: TlsMaterial) => void)[] = [];
  const complain = seldom((err, unsaid) =>
    log.error({ err, ...unsaid }, "changed TLS files cannot be used; the old ones still are"),
  );
  const look = async () => {
    try {
      const found = await readTls(files);
      if (same(found, current)) return;
      current = found;
      for (const listener of listeners) listener(found);
      log.info({ cert: files.cert }, "changed TLS files are in use");
    } catch (error) {
      complain(error);
    }
  };
  // One look after the other, however slow the disk is.
  const again = () => {
    timer = setTimeout(() => void look().then(() => stopped || again()), lookMs).unref();
  };
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  again();
  return {
    get current() {
      return current;
    },
    onChange: (listener) => void listeners.push(listener),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

function same(one: TlsMaterial, other: TlsMaterial): boolean {
  return one.cert === other.cert && one.key === other.key && one.ca === other.ca;
}
