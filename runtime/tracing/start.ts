import { inTime } from "../in-time.ts";
import type { Lifecycle } from "../lifecycle.ts";
import type { Logger } from "../log.ts";
import { seldom } from "../seldom.ts";
import type { TracingConfig } from "./env.ts";
import { setSpans } from "./spans.ts";

/** How long the last spans may take to get out. */
const FLUSH_MS = 2_000;

/**
 * Turns tracing on where the settings ask for it; else nothing of OpenTelemetry is loaded.
 * @param role names the service where the settings do not
 */
export async function startTracing(
  config: TracingConfig | undefined,
  role: string | undefined,
  { log, lifecycle }: { log: Logger; lifecycle: Lifecycle },
): Promise<void> {
  if (!config) return;
  const complain = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "traces do not get to their collector"),
  );
  const { startSdk } = await import("./sdk.ts");
  const name = role === undefined ? "sandgate" : `sandgate-${role}`;
  await lifecycle.start("tracing", {
    start: () => {
      const sdk = startSdk(config, name, complain);
      setSpans(sdk.spans);
      return sdk;
    },
    end: async (sdk) => {
      setSpans(undefined);
      await inTime(sdk.stop(), FLUSH_MS).catch(complain);
    },
  });
}
