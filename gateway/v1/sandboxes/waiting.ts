import type { Client } from "@connectrpc/connect";
import type { Static } from "typebox";
import type { SandboxService } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { toPublicError } from "../../errors.ts";
import type { Call } from "../../http/route.ts";
import type { Waits } from "../../waits.ts";
import type { SandboxReads } from "./reads.ts";
import {
  type AnswerKeeper,
  answerOf,
  type Changed,
  keepAnswer,
  keptAnswer,
  whole,
} from "./replays.ts";
import type { StartQuery } from "./schema/queries.ts";
import type { Sandbox as PublicSandbox } from "./schema/sandbox.ts";
import { publicSandbox } from "./translate/sandbox.ts";

const DEFAULT_WAIT_SECS = 60;
const MAX_WAIT_SECS = 300;

/** What the handlers of `/v1/sandboxes` work with. */
export interface SandboxDeps extends AnswerKeeper {
  sandboxes: Client<typeof SandboxService>;
  reads: SandboxReads;
  waits: Waits;
}

type WaitCall = Call<unknown, Static<typeof StartQuery>>;

/** Answers with what `admit` returns or, where the query asks for it, with what becomes of that. */
export async function answerOrWait(
  deps: SandboxDeps,
  call: WaitCall,
  admit: () => Promise<Changed>,
): Promise<PublicSandbox> {
  if (call.query.wait_for === undefined) return answerOf(await admit(), call);
  return answerLater(deps, call, admit);
}

/** One that was admitted before is waited for again, unless it is known what the first request was told. */
async function answerLater(
  deps: SandboxDeps,
  { query, caller, signal, replayed }: WaitCall,
  admit: () => Promise<Changed>,
): Promise<PublicSandbox> {
  let admitted: Changed = {};
  const wait = deps.waits.hold({
    admit: async () => {
      admitted = await admit();
      return keptAnswer(admitted) ? undefined : whole(admitted).id;
    },
    read: reader(deps, caller),
    budgetMs: Math.min(query.wait_timeout ?? DEFAULT_WAIT_SECS, MAX_WAIT_SECS) * 1000,
    signal,
  });
  const settled = await wait.catch((error: unknown) => {
    // Of one that is gone the first request was told the same.
    if (admitted.replay && toPublicError(error).code === "sandbox_not_found") replayed();
    throw error;
  });
  if (!settled) return answerOf(admitted, { replayed });
  if (admitted.replay) replayed();
  return keepAnswer(deps, caller, publicSandbox(settled));
}

function reader({ reads }: SandboxDeps, caller: Call["caller"]) {
  // A read has nothing to do with the key of the change.
  const { idempotency: _, ...whoReads } = caller;
  return (id: string) => reads.get(whoReads, { case: "id", value: id });
}
