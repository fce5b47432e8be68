import { expect, it } from "vitest";
import { checkRuntime } from "../../services/orchestrator/engines/docker/connect.ts";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { OTHER_RUNTIME } from "../support/docker-daemon.ts";
import { IMAGES } from "../support/images.ts";
import { allocate, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: the runtime that its operator chose", ({ host }) => {
  const { docker, installationId, container } = useDocker(host, [IMAGES.busybox]);

  it("runs every sandbox", async () => {
    // A daemon that was there before these tests knows its own only.
    const info: { Runtimes: object } = await docker.info();
    const runtime = OTHER_RUNTIME in info.Runtimes ? OTHER_RUNTIME : "runc";
    await checkRuntime({ host }, runtime);
    const engine = createDockerEngine({ installationId, docker: { host, runtime }, log: SILENT });
    const sandbox = allocate();
    expect(await engine.ensureRunning(sandbox, UNHURRIED)).toMatchObject({ state: "running" });
    expect((await container(sandbox).inspect()).HostConfig).toMatchObject({ Runtime: runtime });
    await engine.close();
  });

  it("is one that the daemon knows", async () => {
    await expect(checkRuntime({ host }, "runsk")).rejects.toThrow(
      /^DOCKER_RUNTIME is 'runsk', and Docker has no runtime of that name; it has .*\brunc\b/,
    );
  });
});
