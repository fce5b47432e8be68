import { expect, it } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { stopMachine } from "../../services/orchestrator/engines/docker/stop-and-remove.ts";
import { EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: a stop", ({ host }) => {
  const harness = useDocker(host, [IMAGES.busybox]);

  it("of a machine that is given its settled name meanwhile is not taken for done", async () => {
    const sandbox = allocate();
    await harness.start(sandbox);
    const settled = `sbx-${sandbox.sandboxId}-1`;
    const { Id } = await harness.container(sandbox).inspect();
    const itself = harness.docker.getContainer(Id);
    await itself.rename({ name: `${settled}-after-5` });
    const docker = connectDocker({ host });
    const find = docker.getContainer.bind(docker);
    docker.getContainer = (id) => {
      const found = find(id);
      const stop = found.stop.bind(found);
      // Between the look at it and the stop.
      if (id !== Id) found.stop = () => itself.rename({ name: settled }).then(() => stop());
      return found;
    };
    const ctx = { docker, installationId: harness.installationId, log: SILENT };
    await expect(stopMachine(ctx as never, sandbox, 0)).rejects.toThrow(EngineUnavailable);
    expect(await harness.engine.stop(sandbox, 0)).toMatchObject({ state: "ended" });
  });
});
