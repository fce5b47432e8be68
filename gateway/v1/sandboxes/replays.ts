import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import type { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import type { Sandbox } from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { Replay } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import type { Call } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import type { Sandbox as PublicSandbox } from "./schema/sandbox.ts";
import { publicSandbox } from "./translate/sandbox.ts";

/** What a change answers; `replay` is set where an earlier request with the same idempotency key made it. */
export interface Changed {
  sandbox?: Sandbox | undefined;
  replay?: Replay | undefined;
}

export interface AnswerKeeper {
  organizations: Client<typeof OrganizationService>;
  log: FastifyBaseLogger;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

/** The public form of what a change answers; one that was made before is said to be. */
export function answerOf(changed: Changed, { replayed }: Pick<Call, "replayed">): PublicSandbox {
  if (changed.replay) replayed();
  return keptAnswer(changed) ?? publicSandbox(whole(changed));
}

/** What the first request was told, where that came later than its effect and was kept. */
export function keptAnswer({ replay }: Changed): PublicSandbox | undefined {
  return replay && replay.answer.length > 0 ? parse(replay.answer) : undefined;
}

/**
 * Keeps what came later than the effect, for whoever repeats the request.
 * @returns what to answer: of several that waited for the same, the first has said it for all
 */
export async function keepAnswer(
  { organizations, log, rpcTimeoutMs }: AnswerKeeper,
  caller: Caller,
  answer: PublicSandbox,
): Promise<PublicSandbox> {
  const { idempotency, ...keeper } = caller;
  if (!idempotency) return answer;
  const message = { idempotencyKey: idempotency.key, answer: Buffer.from(JSON.stringify(answer)) };
  try {
    return parse((await organizations.keepAnswer(message, callFor(keeper, rpcTimeoutMs))).answer);
  } catch (err) {
    log.warn({ err, request_id: caller.requestId }, "an answer could not be kept for repeats");
    return answer;
  }
}

/** @throws Error where a service answers without the sandbox it is about */
export function whole({ sandbox }: Pick<Changed, "sandbox">): Sandbox {
  if (!sandbox) throw new Error("the answer holds no sandbox");
  return sandbox;
}

// It was written by `keepAnswer`, of this or another gateway.
function parse(answer: Uint8Array): PublicSandbox {
  return JSON.parse(new TextDecoder().decode(answer));
}
