import type { Caller, Reply } from "./call.ts";
import type { World } from "./world.ts";

export interface Context {
  world: World;
  caller: Caller;
}

/** Does one operation; undefined where there is nothing to do it with now. */
export type Operation = (context: Context) => Promise<Reply> | undefined;
