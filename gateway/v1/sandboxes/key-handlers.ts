import type { Static } from "typebox";
import type { Call } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import type { Key } from "./keys.ts";
import { answerOf } from "./replays.ts";
import type { StartQuery } from "./schema/queries.ts";
import { publicSandbox } from "./translate/sandbox.ts";
import { answerOrWait, type SandboxDeps } from "./waiting.ts";

/** The handlers of routes that name one sandbox, whichever way. */
export function keyHandlers<P>(deps: SandboxDeps, keyOf: (params: P) => Key) {
  const { sandboxes, reads, rpcTimeoutMs } = deps;
  const messageOf = (params: P) => ({ key: { key: keyOf(params) } });
  return {
    get: async ({ params, caller }: Call<P>) =>
      publicSandbox(await reads.get(caller, keyOf(params))),

    destroy: async ({ params, caller, replayed }: Call<P>) => {
      const options = callFor(caller, rpcTimeoutMs);
      const { replay } = await sandboxes.destroySandbox(messageOf(params), options);
      if (replay) replayed();
      return { message: "sandbox destroyed" };
    },

    start: async (call: Call<P, Static<typeof StartQuery>>) => {
      const request = messageOf(call.params);
      const options = callFor(call.caller, rpcTimeoutMs);
      return answerOrWait(deps, call, () => sandboxes.startSandbox(request, options));
    },

    stop: async (call: Call<P>) => {
      const options = callFor(call.caller, rpcTimeoutMs);
      return answerOf(await sandboxes.stopSandbox(messageOf(call.params), options), call);
    },
  };
}
