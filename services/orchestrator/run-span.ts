import { inSpan, traceOf } from "../../runtime/tracing/spans.ts";
import type { RunKey } from "./engines/engine.ts";

/** What is done for a run, as a part of the trace in which it was asked for; without one it is just done. */
export function inRunSpan<T>(
  name: string,
  { sandboxId, generation, trace }: RunKey & { trace: string | null },
  work: () => Promise<T>,
): Promise<T> {
  const attributes = { "sandgate.sandbox_id": sandboxId, "sandgate.generation": generation };
  return inSpan(name, { kind: "consumer", parent: traceOf(trace), attributes }, work);
}
