import type { Client } from "@connectrpc/connect";
import type {
  KeysChanged,
  OrganizationService,
} from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { type Following, follow } from "../follow.ts";

export interface KeyWatch extends Following {
  changed(change: KeysChanged): void;
  /** All that was changed `ageMs` ago, or earlier, has been told. */
  current(ageMs: number): void;
  /** Nothing is told until the stream is `current` again. */
  lost(): void;
}

/** Follows the changes of all keys until the signal; a stream that breaks off is opened again. */
export async function watchKeys(client: Client<typeof OrganizationService>, watch: KeyWatch) {
  const { changed, current, lost, signal } = watch;
  await follow("keys", watch, async (seen) => {
    try {
      for await (const { event } of client.watchKeys({}, { signal })) {
        seen();
        if (event.case === "changed") changed(event.value);
        if (event.case === "current") current(event.value.ageMs);
      }
    } finally {
      lost();
    }
  });
}
