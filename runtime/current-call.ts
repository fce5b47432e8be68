import { AsyncLocalStorage } from "node:async_hooks";

/** For whom the code that runs now works. */
export interface CurrentCall {
  /** The organization that it is for; undefined: none. */
  owner: string | undefined;
  /** Aborted when nobody waits for the answer any more; undefined where the work is to be done all the same. */
  signal: AbortSignal | undefined;
}

const calls = new AsyncLocalStorage<CurrentCall & { isOver: boolean }>();

/** Undefined outside of calls, and in what a call has left behind. */
export function currentCall(): CurrentCall | undefined {
  const call = calls.getStore();
  return call?.isOver ? undefined : call;
}

/** Does what a call asks for. */
export async function inCall<T>(call: CurrentCall, work: () => Promise<T>): Promise<T> {
  const current = { ...call, isOver: false };
  try {
    return await calls.run(current, work);
  } finally {
    current.isOver = true;
  }
}

/** Does what others wait for too: the call that happened to begin it cannot end it. */
export function forAll<T>(work: () => T): T {
  return calls.exit(work);
}
