import type { Static } from "typebox";
import type { Call } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { publicPage } from "../pages.ts";
import { given } from "../values.ts";
import { keyById } from "./keys.ts";
import { answerOf } from "./replays.ts";
import type { CreateSandboxRequest, UpdateSandboxRequest } from "./schema/create.ts";
import type { CreateQuery, ListQuery, SandboxIdParams } from "./schema/queries.ts";
import { createMessage } from "./translate/request.ts";
import { publicSandbox } from "./translate/sandbox.ts";
import { answerOrWait, type SandboxDeps } from "./waiting.ts";

type CreateCall = Call<unknown, Static<typeof CreateQuery>, CreateSandboxRequest>;
type UpdateCall = Call<Static<typeof SandboxIdParams>, unknown, UpdateSandboxRequest>;

// What writes is not broken off when the client hangs up: it may be done already.

export function createHandler(deps: SandboxDeps) {
  return (call: CreateCall) =>
    answerOrWait(deps, call, async () => {
      const message = createMessage(call.body, call.query.start ?? false);
      return deps.sandboxes.createSandbox(message, callFor(call.caller, deps.rpcTimeoutMs));
    });
}

export function listHandler({ reads }: SandboxDeps) {
  return async ({ query, caller }: Call<unknown, ListQuery>) => {
    const page = await reads.list(caller, query);
    return publicPage(page.sandboxes.map(publicSandbox), page.nextPageToken);
  };
}

export function updateHandler({ sandboxes, rpcTimeoutMs }: SandboxDeps) {
  return async (call: UpdateCall) => {
    const { params, body, caller } = call;
    const message = {
      key: { key: keyById(params) },
      name: given(body.name),
      slug: given(body.slug),
    };
    return answerOf(await sandboxes.renameSandbox(message, callFor(caller, rpcTimeoutMs)), call);
  };
}
