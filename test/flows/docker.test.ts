import type Docker from "dockerode";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program } from "../support/program.ts";
import { startRegistry, type TestRegistry } from "../support/registry.ts";
import { inBothShapes } from "../support/shapes.ts";

describeWithDocker("the whole program on Docker", ({ host, network }) => {
  inBothShapes("sandboxes", (startProgram) => {
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
      const status = async () =>
        (await program.api("GET", "/v1/sandboxes/by-name/real")).body.status;
      await expect.poll(status, { timeout: 10_000 }).toBe("stopped");
      expect(await machines()).toEqual([`/sbx-${id}-1 exited`]);
      const again = await program.api("POST", "/v1/sandboxes/by-name/real/start?wait_for=running");
      expect(again.body).toMatchObject({ status: "running", id });
      expect(await inside(id, 2, "cat", "/kept")).toBe("kept");
      await program.api("DELETE", `/v1/sandboxes/${id}`);
      expect((await program.api("GET", `/v1/sandboxes/${id}`)).status).toBe(404);
      await expect.poll(machines, { timeout: 10_000 }).toEqual([]);
    });

    test("a network policy is in force, and again after a restart", async () => {
      const policy = {
        default_egress: "allow",
        rules: [{ direction: "egress", destination: { group: "host" }, action: "deny" }],
      };
      const created = await started({
        ...image(IMAGES.busybox.name),
        name: "policed",
        network: { policy, max_connections: 10 },
      });
      expect(created).toMatchObject({ status: 200, body: { status: "running" } });
      const { id } = created.body;
      names.add(id);
      // A port that nobody listens on: without a policy the host would refuse the connection.
      const gateway = "$(ip route | { read -r _ _ gateway _; echo $gateway; })";
      const ask = (generation: number) =>
        inside(id, generation, "sh", "-c", `nc -w 2 ${gateway} 9`);
      expect(await ask(1)).toMatch(/unreachable|No route|denied/i);
      await program.api("POST", "/v1/sandboxes/by-name/policed/stop", {});
      const status = async () =>
        (await program.api("GET", "/v1/sandboxes/by-name/policed")).body.status;
      await expect.poll(status, { timeout: 10_000 }).toBe("stopped");
      await program.api("POST", "/v1/sandboxes/by-name/policed/start?wait_for=running");
      expect(await ask(2)).toMatch(/unreachable|No route|denied/i);
    });

    test("a machine that somebody kills fails with a reason, and starts again", async () => {
      const { body } = await started({ ...image(IMAGES.busybox.name), name: "killed" });
      names.add(body.id);
      await docker.getContainer(`sbx-${body.id}-1`).kill();
      const read = async () => (await program.api("GET", "/v1/sandboxes/by-name/killed")).body;
      await expect.poll(async () => (await read()).status, { timeout: 15_000 }).toBe("failed");
      expect((await read()).last_failure_message).toMatch(/was killed/);
      const again = await program.api(
        "POST",
        "/v1/sandboxes/by-name/killed/start?wait_for=running",
      );
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

    test("patches, scripts, an init, a log level and an idle time-out are honoured", async () => {
      const { body } = await started({
        ...image(IMAGES.busybox.name),
        runtime: {
          scripts: { greet: "#!/bin/sh\ncat /etc/greeting /etc/group; sleep 1000\n" },
          cmd: ["greet"],
          shell: "/bin/sh",
          log_level: "debug",
        },
        lifecycle: { idle_timeout_secs: 600 },
        patches: [
          { type: "text", path: "/etc/greeting", content: "hello\n" },
          { type: "append", path: "/etc/greeting", content: "again\n" },
          { type: "file", path: "/etc/group", content: [...Buffer.from("bytes\n")] },
          { type: "symlink", target: "greeting", link: "/etc/link" },
          { type: "mkdir", path: "/srv/made", mode: 0o700 },
          { type: "remove", path: "/etc/passwd" },
        ],
      });
      expect(body).toMatchObject({ status: "running", last_failure_message: null });
      names.add(body.id);
      const logs = async () =>
        String(await docker.getContainer(`sbx-${body.id}-1`).logs({ stdout: true }));
      await expect.poll(logs).toMatch(/hello[\s\S]*again[\s\S]*bytes/);
      expect(await inside(body.id, 1, "cat", "/etc/link")).toBe("hello\r\nagain");
      expect(await inside(body.id, 1, "sh", "-c", "ls /srv; ls /etc/passwd; echo $SHELL")).toMatch(
        /^made[\s\S]*No such file[\s\S]*\/bin\/sh$/,
      );
      const init = { cmd: "/bin/sleep", args: ["1000"] };
      const other = await started({ ...image(IMAGES.busybox.name), init });
      names.add(other.body.id);
      expect(other.body.status).toBe("running");
      expect(await inside(other.body.id, 1, "cat", "/proc/1/comm")).toBe("sleep");
    });

    test.each([
      [
        "a patch over what is there already",
        {
          ...image(IMAGES.busybox.name),
          patches: [{ type: "text", path: "/etc/passwd", content: "unseen words" }],
        },
        /^(?!.*unseen).*patches\[0\]: "\/etc\/passwd" is there already; it needs replace: true/,
      ],
      [
        "an init that is not there",
        { ...image(IMAGES.busybox.name), init: { cmd: "auto" } },
        /init "auto" found none in the image/,
      ],
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
      [
        "network.policy.rules[0].destination",
        {
          network: {
            policy: {
              rules: [
                { direction: "egress", destination: { domain: "example.com" }, action: "allow" },
              ],
            },
          },
        },
      ],
      ["network.strict", { network: { strict: true } }],
      [
        "network.secrets",
        { network: { secrets: { entries: [{ env_var: "K", placeholder: "P" }] } } },
      ],
      ["mounts[0].quota_mib", { mounts: [{ type: "bind", host: "/", guest: "/a", quota_mib: 1 }] }],
      [
        "mounts[0].stat_virtualization",
        { mounts: [{ type: "bind", host: "/", guest: "/a", stat_virtualization: "off" }] },
      ],
      [
        "mounts[0].host_permissions",
        { mounts: [{ type: "bind", host: "/", guest: "/a", host_permissions: "mirror" }] },
      ],
      [
        "mounts[1]",
        {
          mounts: [
            { type: "tmpfs", guest: "/t" },
            { type: "disk_image", host: "/d", guest: "/d", format: "raw" },
          ],
        },
      ],
      ["resources.disk_size_mib", { resources: { disk_size_mib: 100 } }],
      ["rlimits[0]", { rlimits: [{ resource: "as", soft: 1, hard: 1 }] }],
    ])("%s is refused by name, and nothing is made", async (field, spec) => {
      const before = (await program.api("GET", "/v1/sandboxes?limit=100")).body.data.length;
      const refused = await program.api("POST", "/v1/sandboxes", { ...image(), ...spec });
      expect(refused).toMatchObject({
        status: 400,
        body: { error: { code: "invalid_sandbox_config", details: { field } } },
      });
      expect(refused.body.error.message).toMatch(/^[\w.[\]]+: (?:is|cannot|copies|limits) /);
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
});
