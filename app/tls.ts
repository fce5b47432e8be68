import type { Config } from "../runtime/config.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { type WatchedTls, watchTls } from "../runtime/tls/watched.ts";

interface TlsOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
}

/** One for all that a program listens and connects with. */
const watches = new WeakMap<Lifecycle, Promise<WatchedTls>>();

/**
 * What services prove themselves by to each other; undefined: TLS_CERT, TLS_KEY and TLS_CA are not set.
 * @throws StartupError where the files cannot be used
 */
export async function provideTls(options: TlsOptions): Promise<WatchedTls | undefined> {
  const { config, log, lifecycle } = options;
  const files = config.rpc.tls;
  if (!files) return undefined;
  const known = watches.get(lifecycle);
  if (known) return known;
  const watch = lifecycle.start("TLS files", {
    start: () => watchTls(files, log),
    end: (watched) => watched.stop(),
  });
  watches.set(lifecycle, watch);
  return watch;
}

/**
 * A certificate that is set is used.
 * @throws StartupError where a URL asks for a connection without TLS
 */
export function refusePlain({ rpc }: Config, name: string, url: string | undefined): void {
  if (rpc.tls && url !== undefined && new URL(url).protocol !== "https:")
    throw new StartupError(
      `${name} has to begin with https:// where TLS_CERT, TLS_KEY and TLS_CA are set`,
    );
}
