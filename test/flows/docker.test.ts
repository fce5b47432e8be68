import type Docker from "dockerode";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program, startProgram } from "../support/program.ts";
import { startRegistry, type TestRegistry } from "../support/registry.ts";

describeWithDocker("the whole program on Docker", ({ host, network }) => {
  let program: Program;
  let docker: Docker;
  let registry: TestRegistry;

  beforeAll(async () => {
    docker = connectDocker({ host });
    await loadImage(docker, IMAGES.busybox);
    registry = await startRegistry(network);
    program = await startProgram({ ENGINE: "docker", DOCKER_HOST: host, STOP_GRACE_SECS: "2" });
  });
  afterAll(async () => {
    await program.close();
    await registry.stop();
  });

  const started = (body: object) =>
    program.api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=30", body);
  const names = new Set<string>();

  /** The containers of the sandboxes that these tests made. */
  async function machines(): Promise<string[]> {
    const label = ["dev.sandgate.sandbox"];
    const all = await docker.listContainers({ all: true, filters: { label } });
    return all
      .filter(({ Labels }) => names.has(Labels["dev.sandgate.sandbox"] ?? ""))
      .map(({ Names, State }) => `${Names[0]} ${State}`);
  }

  async function inside(id: string, generation: number, ...command: string[]): Promise<string> {
    const container = docker.getContainer(`sbx-${id}-${generation}`);
    const exec = await container.exec({ Cmd: command, AttachStdout: true, Tty: true });
    const chunks: Buffer[] = [];
    for await (const chunk of await exec.start({ Tty: true })) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString().trim();
  }

  test("a life: a real container, its disk kept over a restart, nothing left after destroy", async () => {
    const created = await started({
      ...image(IMAGES.busybox.name),
      name: "real",
      env: [{ key: "GREETING", value: "hello world" }],
      resources: { vcpus: 1, memory_mib: 64 },
      labels: { team: "flows" },
    });
    expect(created).toMatchObject({ status: 200, body: { status: "running" } });
    const { id } = created.body;
    names.add(id);
    expect(await inside(id, 1, "sh", "-c", "echo $GREETING; hostname; echo kept > /kept")).toBe(
      "hello world\r\nreal",
    );
    await program.api("POST", "/v1/sandboxes/by-name/real/stop", {});
    const status = async () => (await program.api("GET", "/v1/sandboxes/by-name/real")).body.status;
    await expect.poll(status, { timeout: 10_000 }).toBe("stopped");
    expect(await machines()).toEqual([`/sbx-${id}-1 exited`]);
    const again = await program.api("POST", "/v1/sandboxes/by-name/real/start?wait_for=running");
    expect(again.body).toMatchObject({ status: "running", id });
    expect(await inside(id, 2, "cat", "/kept")).toBe("kept");
    await program.api("DELETE", `/v1/sandboxes/${id}`);
    expect((await program.api("GET", `/v1/sandboxes/${id}`)).status).toBe(404);
    await expect.poll(machines, { timeout: 10_000 }).toEqual([]);
  });

  test("a machine that somebody kills fails with a reason, and starts again", async () => {
    const { body } = await started({ ...image(IMAGES.busybox.name), name: "killed" });
    names.add(body.id);
    await docker.getContainer(`sbx-${body.id}-1`).kill();
    const read = async () => (await program.api("GET", "/v1/sandboxes/by-name/killed")).body;
    await expect.poll(async () => (await read()).status, { timeout: 15_000 }).toBe("failed");
    expect((await read()).last_failure_message).toMatch(/was killed/);
    const again = await program.api("POST", "/v1/sandboxes/by-name/killed/start?wait_for=running");
    expect(again.body.status).toBe("running");
  });

  test("private images: inline credentials serve every pull, wrong ones fail and say so", async () => {
    await registry.push(docker, IMAGES.busybox.name, "team/tool");
    const reference = `${registry.host}/team/tool`;
    const { username, password } = registry;
    const always = { ...image(reference), pull_policy: "always" };
    const good = await started({ ...always, registry: { mode: "inline", username, password } });
    expect(good.body).toMatchObject({ status: "running", last_failure_message: null });
    names.add(good.body.id);
    expect(JSON.stringify(good.body)).not.toContain(password);
    const bad = await started({
      ...always,
      registry: { mode: "inline", username, password: "no" },
    });
    names.add(bad.body.id);
    expect(bad.body).toMatchObject({
      status: "failed",
      last_failure_message: expect.stringContaining(reference),
    });
    const anonymous = await started({ ...always, registry: { mode: "anonymous" } });
    names.add(anonymous.body.id);
    expect(anonymous.body.status).toBe("failed");
  });

  test.each([
    [
      "an image that is not there",
      { ...image("sandgate-test/none"), pull_policy: "never" },
      /sandgate-test\/none/,
    ],
    [
      "a command that is not in the image",
      { ...image(IMAGES.busybox.name), runtime: { cmd: ["frobnicate"] } },
      /frobnicate/,
    ],
  ])("%s fails within the wait, and says what is wrong", async (_, body, message) => {
    const failed = await started(body);
    names.add(failed.body.id);
    expect(failed.body).toMatchObject({
      status: "failed",
      last_failure_message: expect.stringMatching(message),
    });
  });

  test.each([
    ["network.policy", { network: { policy: { rules: [] } } }],
    ["network.strict", { network: { strict: true } }],
    ["network.max_connections", { network: { max_connections: 5 } }],
    [
      "network.secrets",
      { network: { secrets: { entries: [{ env_var: "K", placeholder: "P" }] } } },
    ],
    ["mounts[0]", { mounts: [{ type: "bind", host: "/a", guest: "/a" }] }],
    [
      "mounts[1]",
      {
        mounts: [
          { type: "tmpfs", guest: "/t" },
          { type: "disk_image", host: "/d", guest: "/d", format: "raw" },
        ],
      },
    ],
    ["patches", { patches: [{ type: "mkdir", path: "/x" }] }],
    ["runtime.scripts", { runtime: { scripts: { go: "#!/bin/sh" } } }],
    ["runtime.log_level", { runtime: { log_level: "debug" } }],
    ["init", { init: { cmd: "auto" } }],
    ["resources.disk_size_mib", { resources: { disk_size_mib: 100 } }],
    ["lifecycle.idle_timeout_secs", { lifecycle: { idle_timeout_secs: 60 } }],
    ["rlimits[0]", { rlimits: [{ resource: "as", soft: 1, hard: 1 }] }],
  ])("%s is refused by name, and nothing is made", async (field, spec) => {
    const before = (await program.api("GET", "/v1/sandboxes?limit=100")).body.data.length;
    const refused = await program.api("POST", "/v1/sandboxes", { ...image(), ...spec });
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_sandbox_config", details: { field } } },
    });
    expect((await program.api("GET", "/v1/sandboxes?limit=100")).body.data).toHaveLength(before);
  });

  test("max_duration_secs stops the machine; an ephemeral one that ended can still be read", async () => {
    const { body } = await started({
      ...image(IMAGES.busybox.name),
      lifecycle: { max_duration_secs: 1, ephemeral: true },
    });
    names.add(body.id);
    const read = async () => (await program.api("GET", `/v1/sandboxes/${body.id}`)).body.status;
    await expect.poll(read, { timeout: 15_000 }).toBe("stopped");
  });

  test("when all are destroyed nothing of them is left", async () => {
    const { body } = await program.api("GET", "/v1/sandboxes?limit=100");
    expect(body.data.length).toBeGreaterThan(0);
    for (const { id } of body.data) await program.api("DELETE", `/v1/sandboxes/${id}`);
    await expect.poll(machines, { timeout: 30_000 }).toEqual([]);
  });
});
