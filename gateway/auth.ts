import type { Client } from "@connectrpc/connect";
import type {
  FastifyBaseLogger,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from "fastify";
import type { OrganizationService } from "../proto/gen/organization/v1/organization_service_pb.ts";
import { hashApiKey, isApiKey } from "../runtime/api-key.ts";
import type { Caller } from "../runtime/caller.ts";
import { METRICS } from "../runtime/metrics/catalogue.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { sourceOf } from "./auth/client-address.ts";
import { Guesses } from "./auth/guesses.ts";
import { HeldKeys, type KeyLook } from "./auth/held-keys.ts";
import { type Holder, KeyCache } from "./auth/key-cache.ts";
import { KeyUses } from "./auth/key-uses.ts";
import { watchKeys } from "./auth/watch-keys.ts";
import { orgSuspended, toPublicError, unauthorized } from "./errors.ts";
import type { RateLimits } from "./limits/rate-limits.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who asks; set by `authenticate`, before any handler of `/v1`. */
    caller: Caller;
    /** Finds out again whose key it is; set with the caller. */
    lookAtKey: KeyLook;
  }
}

interface AuthenticatorOptions {
  organizations: Client<typeof OrganizationService>;
  /** Deadline of a look-up. */
  timeoutMs: number;
  limits: RateLimits;
  metrics: Metrics;
  log: FastifyBaseLogger;
}

/** Finds out who asks, and whether they may ask now. */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #keys: KeyCache;
  readonly #guesses: Guesses;
  readonly #uses: KeyUses;
  readonly #held = new HeldKeys();
  readonly #end = new AbortController();
  readonly #refused: (code: string) => void;

  constructor(options: AuthenticatorOptions) {
    const { organizations, timeoutMs, metrics, log } = options;
    this.#options = options;
    this.#keys = new KeyCache(organizations, timeoutMs);
    this.#guesses = new Guesses(timeoutMs);
    this.#uses = new KeyUses(organizations, log);
    const refusals = metrics.counter(METRICS.authRefusals);
    this.#refused = (code) => refusals.inc({ code });
    metrics.gauge(METRICS.keyCurrencyAge, (put) => {
      const age = this.#keys.currency.ageMs();
      if (age !== undefined) put(age / 1_000, {});
    });
  }

  /** Begins to watch keys; once. */
  start(backoffMs = 100): void {
    const { organizations, log } = this.#options;
    this.#uses.start();
    void watchKeys(organizations, {
      changed: (change) => this.#keys.changed(change),
      current: (ageMs) => this.#keys.currency.current(ageMs),
      lost: () => this.#keys.currency.lost(),
      signal: this.#end.signal,
      log,
      backoffMs,
    });
  }

  /** Stops watching, and tells which keys were used. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#uses.close();
  }

  /** A hook that sets `request.caller`; done with a PublicError (invalid_api_key, org_suspended, rate_limited) it refuses. */
  readonly authenticate = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: HookHandlerDoneFunction,
  ): void => {
    const refuse = (error: unknown) => {
      this.#refused(toPublicError(error).code);
      done(error as Error);
    };
    try {
      this.#admit(request, reply).then(() => done(), refuse);
    } catch (error) {
      refuse(error);
    }
  };

  // What is known is known at once: whoever floods with wrong keys costs no promise.
  #admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const holder = this.#holderOf(request);
    return holder instanceof Promise
      ? holder.then((found) => this.#enter(found, request, reply))
      : this.#enter(holder, request, reply);
  }

  async #enter(holder: Holder, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { orgId, apiKeyId, apiKeyName, suspended } = holder;
    await this.#options.limits.admit(apiKeyId, reply);
    if (suspended) throw orgSuspended();
    this.#uses.note(apiKeyId);
    const actor = { kind: "api_key", api_key_id: apiKeyId, name: apiKeyName } as const;
    request.caller = { orgId, actor, requestId: request.id };
  }

  /**
   * For an answer that goes on: aborts `cut` when the key of its request is revoked or has expired, or the organization is
   * suspended.
   * @returns what ends that
   */
  readonly whileGood = ({ lookAtKey }: FastifyRequest, cut: AbortController): (() => void) =>
    this.#held.hold(lookAtKey, cut);

  // A request without a key guesses nothing: it is not counted.
  #holderOf(request: FastifyRequest): Holder | Promise<Holder> {
    const { authorization } = request.headers;
    if (authorization === undefined) throw unauthorized();
    const key = bearerKey(authorization);
    if (key === undefined) return this.#refuse(sourceOf(request));
    const keySha256 = hashApiKey(key);
    const id = keySha256.toString("base64");
    const known = () => unexpired(this.#keys.believed(id));
    const find = async () => unexpired(await this.#keys.find(id, keySha256)) ?? refuse();
    request.lookAtKey = { id, look: () => known() ?? find() };
    // One that was good is not guessed, even where it has to be asked for again.
    const wasGood = unexpired(this.#keys.remembered(id)) !== undefined;
    return known() ?? (wasGood ? find() : this.#guess(request, id, known, find));
  }

  #guess(
    request: FastifyRequest,
    id: string,
    known: () => Holder | undefined,
    find: () => Promise<Holder>,
  ): Promise<Holder> {
    const source = sourceOf(request);
    return this.#keys.isNobodys(id)
      ? this.#refuse(source)
      : this.#guesses.attempt(source, known, find);
  }

  /** A guess that is wrong without looking. */
  #refuse(source: string): Promise<never> {
    if (this.#guesses.fail(source)) throw unauthorized();
    return this.#guesses.attempt(source, () => undefined, refuse);
  }
}

/** The key of an `Authorization` header, where its form is good; undefined: it can be nobody's. */
function bearerKey(header: string): string | undefined {
  const key = /^bearer +(\S+) *$/i.exec(header)?.[1];
  return key !== undefined && isApiKey(key) ? key : undefined;
}

function unexpired(holder: Holder | undefined): Holder | undefined {
  return holder && holder.expiresAt > Date.now() ? holder : undefined;
}

async function refuse(): Promise<never> {
  throw unauthorized();
}
