import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import type {
  AuthenticateKeyResponse,
  KeysChanged,
  OrganizationService,
} from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { toPublicError, unauthorized } from "../errors.ts";
import { Currency } from "./currency.ts";

const UNWATCHED_MS = 1_000;
const PLACES = 10_000;

/** Whose key it is. */
export interface Holder {
  orgId: string;
  apiKeyId: string;
  apiKeyName: string;
  suspended: boolean;
  /** In Unix milliseconds; infinity: never. */
  expiresAt: number;
}

/** An answer, and when it was asked for, by `performance.now()`. */
interface Known {
  id: string;
  holder: Holder;
  began: number;
}

interface LookUp {
  began: number;
  /** How many changes had been told of when it began. */
  changes: number;
  holder: Promise<Holder>;
}

/**
 * Whose keys these are, as far as that may be believed without asking: for a second after it was asked, and
 * beyond for as long as the stream of changes is current and told of none.
 */
export class KeyCache {
  readonly currency = new Currency();
  readonly #organizations: Client<typeof OrganizationService>;
  readonly #timeoutMs: number;
  readonly #good: LRUCache<string, Known>;
  /** The good ones, by the ids that changes name. */
  readonly #byKeyId = new Map<string, Known>();
  /** When those that nobody has were asked for. */
  readonly #unknown: LRUCache<string, number>;
  readonly #underWay = new Map<string, LookUp>();
  #changes = 0;

  /** @param places how many good keys, and how many unknown ones, are remembered */
  constructor(
    organizations: Client<typeof OrganizationService>,
    timeoutMs: number,
    places = PLACES,
  ) {
    this.#organizations = organizations;
    this.#timeoutMs = timeoutMs;
    this.#good = new LRUCache({
      max: places,
      dispose: ({ holder }) => this.#byKeyId.delete(holder.apiKeyId),
    });
    this.#unknown = new LRUCache({ max: places });
  }

  /** Who is believed to hold the key whose hash is `id`. */
  believed(id: string): Holder | undefined {
    const known = this.#good.get(id);
    return known && this.#believes(known.began) ? known.holder : undefined;
  }

  /** Who held it when it was last asked for, believed or not. */
  remembered(id: string): Holder | undefined {
    return this.#good.get(id)?.holder;
  }

  /** Whether it is believed that nobody holds it. */
  isNobodys(id: string): boolean {
    return this.#believes(this.#unknown.get(id));
  }

  /**
   * Who holds a key, asked for where it is not known; those who want the same key at once share one look-up.
   * @param keySha256 32 bytes, of which `id` is a text
   * @throws PublicError (invalid_api_key); whatever else the look-up ends in
   */
  async find(id: string, keySha256: Uint8Array): Promise<Holder> {
    const holder = this.believed(id);
    if (holder) return holder;
    if (this.isNobodys(id)) throw unauthorized();
    const underWay = this.#underWay.get(id);
    return underWay && this.#mayShare(underWay) ? underWay.holder : this.#lookUp(id, keySha256);
  }

  /** Forgets what the change may have made untrue, and that keys are unknown: one may be new. */
  changed({ orgId, apiKeyId }: KeysChanged): void {
    this.#changes += 1;
    this.#unknown.clear();
    const known = apiKeyId === "" ? this.#ofOrganization(orgId) : [this.#byKeyId.get(apiKeyId)];
    for (const one of known) if (one) one.began = Number.NEGATIVE_INFINITY;
  }

  #ofOrganization(orgId: string): Known[] {
    return [...this.#good.values()].filter(({ holder }) => holder.orgId === orgId);
  }

  #believes(began: number | undefined): boolean {
    if (began === undefined) return false;
    return performance.now() - began < UNWATCHED_MS || this.currency.vouchesSince(began);
  }

  // Whoever comes after a change must not get an answer from before it.
  #mayShare({ began, changes }: LookUp): boolean {
    return changes === this.#changes && performance.now() - began < UNWATCHED_MS;
  }

  #lookUp(id: string, keySha256: Uint8Array): Promise<Holder> {
    const began = performance.now();
    const lookUp = { began, changes: this.#changes, holder: this.#ask(id, keySha256, began) };
    this.#underWay.set(id, lookUp);
    const end = () => {
      if (this.#underWay.get(id) === lookUp) this.#underWay.delete(id);
    };
    lookUp.holder.then(end, end);
    return lookUp.holder;
  }

  async #ask(id: string, keySha256: Uint8Array, began: number): Promise<Holder> {
    const changes = this.#changes;
    const options = { timeoutMs: this.#timeoutMs };
    try {
      const holder = toHolder(await this.#organizations.authenticateKey({ keySha256 }, options));
      if (changes === this.#changes) this.#remember({ id, holder, began });
      return holder;
    } catch (error) {
      if (toPublicError(error).code !== "invalid_api_key") throw error;
      this.#forget(id);
      if (changes === this.#changes) this.#unknown.set(id, began);
      throw unauthorized();
    }
  }

  #remember(known: Known): void {
    this.#unknown.delete(known.id);
    this.#good.set(known.id, known);
    this.#byKeyId.set(known.holder.apiKeyId, known);
  }

  #forget(id: string): void {
    this.#good.delete(id);
  }
}

function toHolder(found: AuthenticateKeyResponse): Holder {
  return {
    orgId: found.orgId,
    apiKeyId: found.apiKeyId,
    apiKeyName: found.apiKeyName,
    suspended: found.orgSuspended,
    expiresAt: found.expiresAt ? timestampMs(found.expiresAt) : Number.POSITIVE_INFINITY,
  };
}
