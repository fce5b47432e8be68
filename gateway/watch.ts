import type { Client } from "@connectrpc/connect";
import type { SandboxChange, SandboxService } from "../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { type Following, follow } from "./follow.ts";

export interface Watch extends Following {
  /** A sandbox has changed. */
  changed(change: SandboxChange): void;
  /** Any sandbox may have changed. */
  reset(): void;
}

/**
 * Follows the changes of all sandboxes until the signal; a broken stream is resumed behind the last
 * change seen. One that cannot be resumed begins with a reset, and so does the very first.
 */
export async function watchSandboxes(client: Client<typeof SandboxService>, watch: Watch) {
  const { changed, reset, signal } = watch;
  let cursor = "";
  await follow("sandboxes", watch, async (seen) => {
    for await (const message of client.watchSandboxes({ cursor }, { signal })) {
      seen();
      cursor = message.cursor;
      if (message.event.case === "change") changed(message.event.value);
      else reset();
    }
  });
}
