import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type {
  KeysChanged,
  OrganizationService,
} from "../../proto/gen/organization/v1/organization_service_pb.ts";

const MAX_BACKOFF_MS = 1_000;

export interface KeyWatch {
  changed(change: KeysChanged): void;
  /** All that was changed `ageMs` ago, or earlier, has been told. */
  current(ageMs: number): void;
  /** Nothing is told until the stream is `current` again. */
  lost(): void;
  signal: AbortSignal;
  log: FastifyBaseLogger;
  /** Pause before the first reconnection; it doubles from one to the next. */
  backoffMs: number;
}

/** Follows the changes of all keys until the signal; a stream that breaks off is opened again. */
export async function watchKeys(client: Client<typeof OrganizationService>, watch: KeyWatch) {
  const { signal, log, lost, backoffMs } = watch;
  let pause = backoffMs;
  const seen = () => {
    pause = backoffMs;
  };
  while (!signal.aborted) {
    await followStream(client, watch, seen).catch((err: unknown) => {
      if (!signal.aborted) log.warn({ err }, "the watch on keys broke off");
    });
    lost();
    await sleep(pause, undefined, { signal }).catch(() => undefined);
    pause = Math.min(pause * 2, MAX_BACKOFF_MS);
  }
}

async function followStream(
  client: Client<typeof OrganizationService>,
  { changed, current, signal }: KeyWatch,
  seen: () => void,
): Promise<void> {
  for await (const { event } of client.watchKeys({}, { signal })) {
    seen();
    if (event.case === "changed") changed(event.value);
    if (event.case === "current") current(event.value.ageMs);
  }
}
