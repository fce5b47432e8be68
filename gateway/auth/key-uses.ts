import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import { LRUCache } from "lru-cache";
import type { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";

const EVERY_MS = 10_000;
const PLACES = 100_000;
/** As many as one call takes. */
const BATCH = 10_000;
// The program has other things to end.
const timeoutMs = 2_000;

interface Use {
  apiKeyId: string;
  /** In Unix milliseconds. */
  at: number;
}

/** When keys were last used: noted in memory, and told now and then. */
export class KeyUses {
  readonly #organizations: Client<typeof OrganizationService>;
  readonly #log: FastifyBaseLogger;
  /** By key id; where there are too many, those that were not used for the longest are left out. */
  // By weight, since room for a number of entries would be taken at once.
  readonly #noted = new LRUCache<string, Use>({ maxSize: PLACES, sizeCalculation: () => 1 });
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> | undefined;

  constructor(organizations: Client<typeof OrganizationService>, log: FastifyBaseLogger) {
    this.#organizations = organizations;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => void this.tell(), EVERY_MS);
  }

  note(apiKeyId: string): void {
    this.#noted.set(apiKeyId, { apiKeyId, at: Date.now() });
  }

  /** Sends what was noted; what cannot be sent is kept for the next time. One at a time. */
  async tell(): Promise<void> {
    this.#telling ??= this.#send().finally(() => {
      this.#telling = undefined;
    });
    return this.#telling;
  }

  /** Tells the rest. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#telling;
    await this.tell();
  }

  async #send(): Promise<void> {
    const uses = this.#take();
    try {
      while (uses.length > 0) {
        await this.#organizations.recordKeyUse(messageOf(uses.slice(0, BATCH)), { timeoutMs });
        uses.splice(0, BATCH);
      }
    } catch (err) {
      this.#log.warn({ err }, "the last uses of keys could not be told yet");
      this.#putBack(uses);
    }
  }

  /** Behind what was noted since. */
  #putBack(unsent: readonly Use[]): void {
    for (const use of [...unsent, ...this.#take()]) this.#noted.set(use.apiKeyId, use);
  }

  /** Oldest first. */
  #take(): Use[] {
    const uses = [...this.#noted.rvalues()].filter((use) => use !== undefined);
    this.#noted.clear();
    return uses;
  }
}

function messageOf(uses: readonly Use[]) {
  return {
    uses: uses.map(({ apiKeyId, at }) => ({ apiKeyId, usedAt: timestampFromMs(at) })),
  };
}
