import { expect, it } from "vitest";
import { killStray } from "../../services/orchestrator/engines/docker/stray.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate } from "./allocations.ts";
import { useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: what the daemon has lost sight of", ({ host, network }) => {
  const { engine, start, container } = useDocker(host, [IMAGES.busybox]);

  it.skipIf(network === null)("is killed by its container, and nothing else is", async () => {
    const [stray, other] = [allocate(), allocate()];
    await start(stray);
    await start(other);
    const { Id } = await container(stray).inspect();
    expect(await killStray(Id)).toBeGreaterThan(0);
    await expect
      .poll(async () => (await container(stray).inspect()).State)
      .toMatchObject({ Running: false, ExitCode: 137 });
    expect((await container(other).inspect()).State.Running).toBe(true);
    expect(await killStray(Id)).toBe(0);
    await engine.remove(stray.sandboxId);
  });
});
