import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import type {
  AuthenticateKeyResponse,
  OrganizationService,
} from "../proto/gen/organization/v1/organization_service_pb.ts";
import { hashApiKey, isApiKey } from "../runtime/api-key.ts";
import type { Caller } from "../runtime/caller.ts";
import { orgSuspended, unauthorized } from "./errors.ts";

// Long enough to spare a look-up a request, short enough for a revoked key to stop at once.
const CACHE_MS = 1_000;
const CACHE_SIZE = 10_000;

/** Whose key it is, as long as that may be believed without asking again. */
interface Holder {
  caller: Omit<Caller, "requestId">;
  suspended: boolean;
  /** In Unix milliseconds. */
  until: number;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Who asks; set by `authenticate`, before any handler of `/v1`. */
    caller: Caller;
  }
}

/**
 * Finds out who asks. Only good keys are remembered, and only for a second.
 * @returns a hook that sets `request.caller`
 * @throws PublicError (invalid_api_key, org_suspended), from the hook
 */
export function authenticator(
  organizations: Client<typeof OrganizationService>,
  timeoutMs: number,
) {
  const known = new Map<string, Holder>();

  const holderOf = async (key: string): Promise<Holder> => {
    const keySha256 = hashApiKey(key);
    const id = keySha256.toString("base64");
    const remembered = known.get(id);
    if (remembered && remembered.until > Date.now()) return remembered;
    known.delete(id);
    const holder = toHolder(await organizations.authenticateKey({ keySha256 }, { timeoutMs }));
    remember(known, id, holder);
    return holder;
  };

  return async (request: FastifyRequest): Promise<void> => {
    const key = bearerKey(request.headers.authorization);
    if (key === undefined) throw unauthorized();
    const { caller, suspended } = await holderOf(key);
    if (suspended) throw orgSuspended();
    request.caller = { ...caller, requestId: request.id };
  };
}

/** The key of an `Authorization` header, where its form is good; undefined: it can be nobody's. */
function bearerKey(header: string | undefined): string | undefined {
  const key = /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  return key !== undefined && isApiKey(key) ? key : undefined;
}

/** @throws PublicError (invalid_api_key) on a key that has expired */
function toHolder(found: AuthenticateKeyResponse): Holder {
  const now = Date.now();
  const expiresAt = found.expiresAt ? timestampMs(found.expiresAt) : Number.POSITIVE_INFINITY;
  if (expiresAt <= now) throw unauthorized();
  const actor = { kind: "api_key", api_key_id: found.apiKeyId, name: found.apiKeyName } as const;
  return {
    caller: { orgId: found.orgId, actor },
    suspended: found.orgSuspended,
    until: Math.min(now + CACHE_MS, expiresAt),
  };
}

// The oldest makes room: what is asked for often comes back within the second.
function remember(known: Map<string, Holder>, id: string, holder: Holder): void {
  const [oldest] = known.keys();
  if (known.size >= CACHE_SIZE && oldest !== undefined) known.delete(oldest);
  known.set(id, holder);
}
