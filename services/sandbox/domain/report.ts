import type { SandboxContext } from "../context.ts";
import { type EndCause, OUTCOMES } from "./lifecycle.ts";
import type { Change } from "./sandbox.ts";

const MOST_MESSAGE = 4_000;

/** What an engine did to a run, or could not do. */
export type Observation =
  | { kind: "placed" }
  | { kind: "waiting" }
  | { kind: "running"; startedAt: Date }
  | { kind: "ended"; endedAt: Date | null; cause: EndCause; message: string }
  | { kind: "removed" };

/** @returns whether it changed anything: a late or repeated report does not */
export async function report(
  ctx: SandboxContext,
  sandboxId: string,
  generation: number,
  observation: Observation,
): Promise<boolean> {
  if (observation.kind === "removed") return ctx.store.reportRemoved(sandboxId);
  const change = await record(ctx, sandboxId, generation, observation);
  if (change) ctx.changes.publish(change);
  return change !== undefined;
}

function record(
  { store, lingerSecs }: SandboxContext,
  sandboxId: string,
  generation: number,
  observation: Exclude<Observation, { kind: "removed" }>,
): Promise<Change | undefined> {
  switch (observation.kind) {
    case "placed":
      return store.reportPlacement(sandboxId, generation, null);
    case "waiting":
      return store.reportPlacement(sandboxId, generation, "insufficient_capacity");
    case "running":
      return store.reportRunning(sandboxId, generation, observation.startedAt);
    case "ended": {
      const { endedAt, cause } = observation;
      const outcome = OUTCOMES[cause];
      const message = readable(observation.message);
      return store.reportEnded(sandboxId, generation, { endedAt, outcome, message, lingerSecs });
    }
  }
}

// An engine may quote a program's output: whatever it is, the report has to be kept.
function readable(message: string): string {
  const text = message.replaceAll("\0", "");
  return text.length > MOST_MESSAGE ? `${text.slice(0, MOST_MESSAGE)}…` : text;
}
