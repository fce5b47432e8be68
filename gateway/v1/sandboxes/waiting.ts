import type { Client } from "@connectrpc/connect";
import type { Static } from "typebox";
import type { Sandbox } from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxService } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { Call } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import type { Waits } from "../../waits.ts";
import type { StartQuery } from "./schema/queries.ts";
import type { Sandbox as PublicSandbox } from "./schema/sandbox.ts";
import { publicSandbox } from "./translate/sandbox.ts";

const DEFAULT_WAIT_SECS = 60;
const MAX_WAIT_SECS = 300;

/** What the handlers of `/v1/sandboxes` work with. */
export interface SandboxDeps {
  sandboxes: Client<typeof SandboxService>;
  waits: Waits;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

/** Answers with what `admit` returns or, where the query asks for it, with what becomes of that. */
export async function answerOrWait(
  { sandboxes, waits, rpcTimeoutMs }: SandboxDeps,
  { query, caller, signal }: Call<unknown, Static<typeof StartQuery>>,
  admit: () => Promise<Sandbox>,
): Promise<PublicSandbox> {
  if (query.wait_for === undefined) return publicSandbox(await admit());
  const budgetMs = Math.min(query.wait_timeout ?? DEFAULT_WAIT_SECS, MAX_WAIT_SECS) * 1000;
  const read = async (id: string) => {
    const options = callFor(caller, rpcTimeoutMs, signal);
    return whole(await sandboxes.getSandbox({ key: { key: { case: "id", value: id } } }, options));
  };
  return publicSandbox(await waits.hold({ admit, read, budgetMs, signal }));
}

/** @throws Error where a service answers without the sandbox it is about */
export function whole({ sandbox }: { sandbox?: Sandbox | undefined }): Sandbox {
  if (!sandbox) throw new Error("the answer holds no sandbox");
  return sandbox;
}
