import { expect, it } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { allocate, nextStart } from "./allocations.ts";
import { useDocker } from "./docker-harness.ts";

const MIB = 1024 * 1024;
// Control groups of version 2, else of version 1.
const READ_LIMITS = `cd /sys/fs/cgroup
  cat memory.max 2>/dev/null || cat memory/memory.limit_in_bytes
  cat cpu.max 2>/dev/null || cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us`;

describeWithDocker("docker engine: what it makes of a spec", ({ host }) => {
  const harness = useDocker(host, [IMAGES.busybox, IMAGES.configured]);
  const { docker, engine, start, run, output, container, installationId } = harness;

  it("limits memory, without swap, and processors and processes", async () => {
    const resources = { vcpus: 1, memoryMib: 96, diskSizeMib: null };
    const sandbox = allocate({ resources });
    await start(sandbox);
    const [memory, quota, period] = (await run(sandbox, "sh", "-c", READ_LIMITS)).split(/\s+/);
    expect(Number(memory)).toBe(96 * MIB);
    expect(Number(quota)).toBe(Number(period));
    const { HostConfig } = await container(sandbox).inspect();
    expect(HostConfig).toMatchObject({ MemorySwap: 96 * MIB, PidsLimit: 4096, Privileged: false });
  });

  it("kills what takes more memory, and the machine goes on", async () => {
    const sandbox = allocate({
      resources: { vcpus: 1, memoryMib: 32, diskSizeMib: null },
      runtime: { cmd: ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=256M count=1; echo was $?"] },
    });
    await start(sandbox);
    await expect.poll(() => output(sandbox)).toContain("was 137");
    expect(await start(sandbox)).toMatchObject({ state: "running", outOfMemory: false });
  });

  it("gives the workload env, user, working directory, shell and hostname", async () => {
    const sandbox = allocate(
      {
        image: IMAGES.configured.name,
        env: [
          { key: "PLAIN", value: "a b" },
          { key: "EMPTY", value: "" },
          { key: "FROM_IMAGE", value: "overridden" },
        ],
        runtime: {
          entrypoint: ["sh", "-c", "id -u; pwd; hostname; env"],
          user: "1000:0",
          workdir: "/made/for/it",
          shell: "/bin/sh",
        },
      },
      { name: "My_Box.v2-" },
    );
    await start(sandbox);
    await expect.poll(() => output(sandbox)).toContain("FROM_IMAGE");
    const lines = (await output(sandbox)).split("\n");
    expect(lines.slice(0, 3)).toEqual(["1000", "/made/for/it", "my-box-v2"]);
    expect(lines).toEqual(
      expect.arrayContaining(["PLAIN=a b", "EMPTY=", "FROM_IMAGE=overridden", "SHELL=/bin/sh"]),
    );
    expect(lines.join()).not.toContain("TINI");
  });

  it("keeps to the image's own user, directory and env where the spec says nothing", async () => {
    const sandbox = allocate({ image: IMAGES.configured.name });
    await start(sandbox);
    expect(await run(sandbox, "sh", "-c", "id -un; pwd; echo $FROM_IMAGE")).toBe("app\n/srv\nyes");
  });

  it("takes no labels from the image: they would speak to the engine, and to others on the host", async () => {
    const image = {
      name: `sandgate-test/labelled-${installationId}`,
      applets: IMAGES.busybox.applets,
      config: {
        Labels: {
          "dev.sandgate.log-level": "bogus",
          "dev.sandgate.workload-watched": "true",
          "dev.sandgate.sandbox": "forged",
          "traefik.enable": "true",
        },
      },
    };
    await loadImage(docker, image);
    const sandbox = allocate({ image: image.name });
    expect(await start(sandbox)).toMatchObject({ state: "running" });
    expect((await container(sandbox).inspect()).Config.Labels).toEqual({
      "dev.sandgate.installation": installationId,
      "dev.sandgate.sandbox": sandbox.sandboxId,
      "dev.sandgate.organization": sandbox.orgId,
      "dev.sandgate.log-level": "",
      "dev.sandgate.workload-watched": "",
      "traefik.enable": "",
    });
    await engine.remove(sandbox.sandboxId);
  });

  it("labels the container, the sandbox's own labels behind a prefix", async () => {
    const labels = { team: "a", empty: "", "dev.sandgate.sandbox": "forged" };
    const sandbox = allocate({ labels });
    await start(sandbox);
    const { Config } = await container(sandbox).inspect();
    expect(Config.Labels).toEqual({
      "dev.sandgate.label.team": "a",
      "dev.sandgate.label.empty": "",
      "dev.sandgate.label.dev.sandgate.sandbox": "forged",
      "dev.sandgate.installation": installationId,
      "dev.sandgate.sandbox": sandbox.sandboxId,
      "dev.sandgate.organization": sandbox.orgId,
    });
  });

  it("sets rlimits", async () => {
    const sandbox = allocate({
      rlimits: [
        { resource: "nofile", soft: 64, hard: 128 },
        { resource: "core", soft: 0, hard: 0 },
      ],
      runtime: { cmd: ["cat", "/proc/self/limits"] },
    });
    await start(sandbox);
    await expect.poll(() => output(sandbox)).toMatch(/Max open files +64 +128 /);
    expect(await output(sandbox)).toMatch(/Max core file size +0 +0 /);
  });

  it("mounts tmpfs with its size and options, parents first, read-only ones too", async () => {
    const plain = { nodev: false, noexec: false, nosuid: false, readonly: false };
    const all = { nodev: true, noexec: true, nosuid: true, readonly: true };
    const sandbox = allocate({
      mounts: [
        { type: "tmpfs", guest: "/a", options: all, sizeMib: 3 },
        { type: "tmpfs", guest: "/a/b", options: plain, sizeMib: 5 },
        { type: "tmpfs", guest: "/c", options: plain, sizeMib: null },
      ],
    });
    await start(sandbox);
    const mounts = await mountsOf(sandbox);
    expect(mounts["/a"]).toEqual(
      expect.arrayContaining(["ro", "nosuid", "nodev", "noexec", "size=3072k"]),
    );
    expect(mounts["/a/b"]).toEqual(expect.arrayContaining(["rw", "size=5120k"]));
    expect(mounts["/c"]).toEqual(expect.arrayContaining(["rw", "size=32768k"]));
    for (const option of ["nosuid", "nodev", "noexec"]) {
      expect(mounts["/a/b"]).not.toContain(option);
      expect(mounts["/c"]).not.toContain(option);
    }
    expect(await run(sandbox, "sh", "-c", "echo in > /a/b/file && cat /a/b/file")).toBe("in");
    expect(await run(sandbox, "touch", "/a/file")).toContain("Read-only file system");
  });

  it("restricts: no new privileges, no capabilities, nosuid and nodev mounts", async () => {
    const options = { nodev: false, noexec: false, nosuid: false, readonly: false };
    const sandbox = allocate({
      securityProfile: "restricted",
      mounts: [{ type: "tmpfs", guest: "/t", options, sizeMib: 1 }],
    });
    await start(sandbox);
    const status = await run(sandbox, "cat", "/proc/1/status");
    expect(status).toMatch(/NoNewPrivs:\s1/);
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
      expect(status).toMatch(new RegExp(`${set}:\\s0{16}\n`));
    expect((await mountsOf(sandbox))["/t"]).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
  });

  it("leaves raw sockets out by default", async () => {
    const sandbox = allocate();
    await start(sandbox);
    const effective = /CapEff:\s([0-9a-f]+)/.exec(await run(sandbox, "cat", "/proc/1/status"))?.[1];
    const capabilities = BigInt(`0x${effective}`);
    const [NET_RAW, SYS_ADMIN, CHOWN] = [13n, 21n, 0n];
    expect((capabilities >> NET_RAW) & 1n).toBe(0n);
    expect((capabilities >> SYS_ADMIN) & 1n).toBe(0n);
    expect((capabilities >> CHOWN) & 1n).toBe(1n);
  });

  it("gives no network, or one in which sandboxes do not see each other", async () => {
    const alone = allocate({ network: { enabled: false } });
    const allow = "allow" as const;
    const policy = { defaultEgress: allow, defaultIngress: allow, rules: [] };
    const open = () => allocate({ network: { enabled: true, policy } });
    const [one, other] = [open(), open()];
    for (const sandbox of [alone, one, other]) await start(sandbox);
    expect(await run(alone, "ls", "/sys/class/net")).toBe("lo");
    expect(await run(one, "ls", "/sys/class/net")).toContain("eth0");
    const { gateway, address } = await addressesOf(other);
    const connect = (to: string) => run(one, "nc", "-w", "3", to, "1");
    expect(await connect(gateway)).toContain("refused");
    expect(await connect(address)).toMatch(/timed out|unreachable|no route/i);
  });

  it("makes its network anew where somebody removed it", async () => {
    const sandbox = allocate(on);
    await start(sandbox);
    for (const machine of await harness.engine.list()) await harness.engine.stop(machine, 0);
    await harness.docker.getNetwork(`sandgate-${installationId}`).remove();
    const again = nextStart(sandbox);
    expect(await start(again)).toMatchObject({ state: "running" });
    expect(await run(again, "ls", "/sys/class/net")).toContain("eth0");
  });

  const on = { network: { enabled: true } };

  async function mountsOf(sandbox: ReturnType<typeof allocate>): Promise<Record<string, string[]>> {
    const mounts = (await run(sandbox, "cat", "/proc/mounts")).split("\n");
    return Object.fromEntries(
      mounts.map((line) => {
        const [, guest = "", , options = ""] = line.split(" ");
        return [guest, options.split(",")];
      }),
    );
  }

  async function addressesOf(
    sandbox: ReturnType<typeof allocate>,
  ): Promise<{ address: string; gateway: string }> {
    const { NetworkSettings } = await container(sandbox).inspect();
    const [network] = Object.values(NetworkSettings.Networks);
    if (!network) throw new Error("the container has no network");
    return { address: network.IPAddress, gateway: network.Gateway };
  }
});
