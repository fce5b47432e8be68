import { expect, test } from "vitest";
import { endOf } from "../../../services/orchestrator/domain/end.ts";

test.each([
  [0, false, "exited", "the machine shut down"],
  [143, false, "crashed", "the machine was shut down from outside"],
  [137, false, "crashed", "the machine was killed"],
  [137, true, "out_of_memory", "the machine ran out of memory"],
  [3, false, "crashed", "the machine ended with exit code 3"],
])(
  "a machine that nobody here stopped, with exit code %i",
  (exitCode, outOfMemory, cause, message) => {
    const endedAt = new Date();
    const machine = {
      sandboxId: "some",
      generation: 1,
      state: "ended" as const,
      startedAt: endedAt,
      workloadEndedAt: null,
      endedAt,
      exitCode,
      outOfMemory,
    };
    expect(endOf(machine)).toEqual({ endedAt, cause, message });
  },
);
