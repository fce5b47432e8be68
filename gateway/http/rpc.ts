import { type CallOptions, createContextValues } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { callerKey } from "../../runtime/rpc/context.ts";

/** Options of a call made for `caller`; with `signal` it ends when the client is gone. */
export function callFor(caller: Caller, timeoutMs: number, signal?: AbortSignal): CallOptions {
  const contextValues = createContextValues().set(callerKey, caller);
  return signal ? { contextValues, timeoutMs, signal } : { contextValues, timeoutMs };
}
