import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type { SandboxChange, SandboxService } from "../proto/gen/sandbox/v1/sandbox_service_pb.ts";

const MAX_BACKOFF_MS = 1_000;

export interface Watch {
  /** A sandbox has changed. */
  changed(change: SandboxChange): void;
  /** Any sandbox may have changed. */
  reset(): void;
  signal: AbortSignal;
  log: FastifyBaseLogger;
  /** Pause before the first reconnection; it doubles from one to the next. */
  backoffMs: number;
}

/**
 * Follows the changes of all sandboxes until the signal; a broken stream is resumed behind the last
 * change seen. One that cannot be resumed begins with a reset, and so does the very first.
 */
export async function watchSandboxes(client: Client<typeof SandboxService>, watch: Watch) {
  const { signal, log, backoffMs } = watch;
  let cursor = "";
  let pause = backoffMs;
  const seen = (last: string) => {
    cursor = last;
    pause = backoffMs;
  };
  while (!signal.aborted) {
    await followStream(client, cursor, watch, seen).catch((err: unknown) => {
      if (!signal.aborted) log.warn({ err }, "the watch on sandboxes broke off");
    });
    await sleep(pause, undefined, { signal }).catch(() => undefined);
    pause = Math.min(pause * 2, MAX_BACKOFF_MS);
  }
}

async function followStream(
  client: Client<typeof SandboxService>,
  cursor: string,
  { changed, reset, signal }: Watch,
  seen: (cursor: string) => void,
): Promise<void> {
  for await (const message of client.watchSandboxes({ cursor }, { signal })) {
    seen(message.cursor);
    if (message.event.case === "change") changed(message.event.value);
    else reset();
  }
}
