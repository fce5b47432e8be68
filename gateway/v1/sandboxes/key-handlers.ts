import type { Static } from "typebox";
import type { Call } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import type { Key } from "./keys.ts";
import type { StartQuery } from "./schema/queries.ts";
import { publicSandbox } from "./translate/sandbox.ts";
import { answerOrWait, type SandboxDeps, whole } from "./waiting.ts";

/** The handlers of routes that name one sandbox, whichever way. */
export function keyHandlers<P>(deps: SandboxDeps, keyOf: (params: P) => Key) {
  const { sandboxes, rpcTimeoutMs } = deps;
  return {
    get: async ({ params, caller, signal }: Call<P>) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      return publicSandbox(whole(await sandboxes.getSandbox({ key: keyOf(params) }, options)));
    },

    destroy: async ({ params, caller }: Call<P>) => {
      await sandboxes.destroySandbox({ key: keyOf(params) }, callFor(caller, rpcTimeoutMs));
      return { message: "sandbox destroyed" };
    },

    start: async (call: Call<P, Static<typeof StartQuery>>) => {
      const request = { key: keyOf(call.params) };
      return answerOrWait(deps, call, async () =>
        whole(await sandboxes.startSandbox(request, callFor(call.caller, rpcTimeoutMs))),
      );
    },

    stop: async ({ params, caller }: Call<P>) => {
      const options = callFor(caller, rpcTimeoutMs);
      return publicSandbox(whole(await sandboxes.stopSandbox({ key: keyOf(params) }, options)));
    },
  };
}
