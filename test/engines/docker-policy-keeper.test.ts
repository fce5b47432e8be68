import { afterEach, describe, expect, it, vi } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { createPolicyKeeper } from "../../services/orchestrator/engines/docker/gate/keeper.ts";
import type { rehearse } from "../../services/orchestrator/engines/docker/gate/rehearse.ts";
import { EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";

const HOST = { vcpus: 1, memoryMib: 1_024, architecture: "amd64", hasInit: true };

/** A keeper whose rehearsals come to these, in this order, and then succeed. */
function keeperWith(...outcomes: (Error | undefined)[]) {
  vi.spyOn(process, "getuid").mockReturnValue(0);
  const play = vi.fn<typeof rehearse>(async () => {
    const outcome = outcomes.shift();
    if (outcome) throw outcome;
  });
  const keeper = createPolicyKeeper({
    docker: connectDocker({ host: "unix:///nonexistent" }),
    installationId: "00000000-0000-0000-0000-000000000000",
    host: async () => HOST as never,
    demanded: true,
    isLocal: true,
    runtime: undefined,
    play,
  });
  return { keeper, play };
}

const CUT_OFF = new Error("a container did not pass its gate");

describe("what is known of network policies", () => {
  afterEach(() => vi.restoreAllMocks());

  it("is not judged by one rehearsal that was cut off", async () => {
    const { keeper } = keeperWith(CUT_OFF);
    expect(await keeper.look()).toMatchObject({ enforced: true });
  });

  it("stays as it was where the daemon is gone by the second", async () => {
    const { keeper } = keeperWith(undefined, CUT_OFF, new EngineUnavailable("gone"));
    await keeper.look();
    await expect(keeper.look()).rejects.toThrow(EngineUnavailable);
    expect(keeper.features()).toContain("network");
  });

  it("is that they cannot be kept where two fail, until a later look", async () => {
    const { keeper, play } = keeperWith(CUT_OFF, CUT_OFF);
    expect(await keeper.look()).toEqual({ enforced: false, why: CUT_OFF.message });
    expect(keeper.features()).toEqual([]);
    keeper.lookAgain();
    await expect.poll(() => keeper.features()).toContain("network");
    keeper.lookAgain();
    expect(play).toHaveBeenCalledTimes(3);
  });
});
