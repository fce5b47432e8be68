import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

describeWithDocker("the whole program where network policies cannot be kept", ({ host }) => {
  inBothShapes("networks", (startProgram) => {
    const programs: Program[] = [];
    const begin = async (env: Record<string, string> = {}) => {
      const program = await startProgram({ ENGINE: "docker", DOCKER_HOST: host, ...env });
      programs.push(program);
      return program;
    };
    const create = (program: Program, network?: object) =>
      program.api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=30", {
        ...image(IMAGES.busybox.name),
        network,
      });

    beforeAll(async () => {
      await loadImage(connectDocker({ host }), IMAGES.busybox);
      // Where neither nft nor nsenter is.
      vi.stubEnv("PATH", "/nonexistent");
    });
    afterAll(async () => {
      vi.unstubAllEnvs();
      for (const program of programs) {
        const { body } = await program.api("GET", "/v1/sandboxes");
        for (const { id } of body.data) await program.api("DELETE", `/v1/sandboxes/${id}`);
        await program.close();
      }
    });

    test("a sandbox with a network is refused by name, one without runs", async () => {
      const program = await begin();
      expect(await create(program)).toMatchObject({
        status: 400,
        body: { error: { code: "invalid_sandbox_config", details: { field: "network" } } },
      });
      const alone = await create(program, { enabled: false });
      expect(alone.body).toMatchObject({ status: "running" });
    });

    test("an operator may accept that, but for what would count connections", async () => {
      const program = await begin({ DOCKER_NETWORK_POLICY: "unenforced" });
      expect((await create(program)).body).toMatchObject({ status: "running" });
      expect((await create(program, { policy: { rules: [] } })).body.status).toBe("running");
      expect((await create(program, { max_connections: 1 })).body).toMatchObject({
        error: { details: { field: "network.max_connections" } },
      });
    });
  });
});
