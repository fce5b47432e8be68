import { describe, expect, it } from "vitest";
import type { EngineSpec } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, type TestImage } from "../support/images.ts";
import { allocate, nextStart, type SpecChanges } from "./allocations.ts";
import { useDocker } from "./docker-harness.ts";

/** busybox's own init, at /sbin/init, with a service. */
const BUSYBOX_INIT: TestImage = {
  name: "sandgate-test/busybox-init",
  applets: [...IMAGES.busybox.applets, "init"],
  links: { "sbin/init": "/bin/init" },
  files: {
    "etc/inittab":
      "::sysinit:/bin/sh -c 'echo up'\n::respawn:/bin/sleep 1000\n::shutdown:/bin/sh -c 'echo down'\n",
  },
};

// 37 is SIGRTMIN+3, for which this shell has no name.
/** What calls itself systemd, and tells how it was started and how it was asked to end. */
const SYSTEMD = `#!/bin/sh
trap 'echo asked; exit 0' 37
echo "up $* container=$container"
grep -E ' /run' /proc/mounts
while :; do sleep 0.1; done
`;
const SYSTEMD_LIKE: TestImage = {
  name: "sandgate-test/systemd-like",
  applets: IMAGES.busybox.applets,
  files: { "usr/lib/systemd/bin/systemd": SYSTEMD },
  links: { "usr/lib/systemd/systemd": "bin/systemd" },
  config: { User: "app" },
};

describeWithDocker("docker engine: an init of the image's own", ({ host }) => {
  const harness = useDocker(host, [BUSYBOX_INIT, SYSTEMD_LIKE, IMAGES.busybox, IMAGES.noShell]);
  const { engine, start, run, output, said, container } = harness;

  const withInit = (init: Partial<NonNullable<EngineSpec["init"]>>, spec: SpecChanges = {}) =>
    allocate({
      image: BUSYBOX_INIT.name,
      init: { cmd: "auto", args: [], env: [], ...init },
      ...spec,
    });

  it("is PID 1, runs its services, and brings them down when it is stopped", async () => {
    const sandbox = withInit({ env: [{ key: "FOR_INIT", value: "yes" }] });
    await start(sandbox);
    expect(await run(sandbox, "cat", "/proc/1/comm")).toBe("init");
    await expect.poll(() => run(sandbox, "ps", "-o", "args")).toContain("/bin/sleep 1000");
    expect(await run(sandbox, "sh", "-c", "echo $FOR_INIT")).toBe("yes");
    expect(await engine.stop(sandbox, 3_000)).toMatchObject({ state: "ended" });
    expect(await output(sandbox)).toMatch(/^up\n[\s\S]*down/);
    const again = nextStart(sandbox);
    expect(await start(again)).toMatchObject({ state: "running" });
    expect(await run(again, "cat", "/proc/1/comm")).toBe("init");
  });

  it("gets its arguments, and the signal and mounts that systemd wants", async () => {
    const sandbox = withInit({ args: ["--unit=a b"] }, { image: SYSTEMD_LIKE.name });
    await start(sandbox);
    await expect.poll(() => output(sandbox)).toContain("/run/lock");
    const [first, ...mounts] = (await output(sandbox)).split("\n");
    expect(first).toBe("up --unit=a b container=docker");
    expect(mounts.map((line) => line.split(" ").slice(1, 3).join(" "))).toEqual([
      "/run tmpfs",
      "/run/lock tmpfs",
    ]);
    expect((await container(sandbox).inspect()).Config).toMatchObject({
      StopSignal: "SIGRTMIN+3",
      User: "0:0",
    });
    expect(await engine.stop(sandbox, 20_000)).toMatchObject({ exitCode: 0 });
    expect(await output(sandbox)).toContain("asked");
  });

  describe("with a workload beside it", () => {
    it("runs both; the end of the workload is said, and the machine goes on", async () => {
      const runtime = { cmd: ["sh", "-c", 'echo "work $1 by $PPID"; exit 4', "sh", "a b"] };
      const sandbox = withInit({}, { runtime });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toContain("work a b");
      await expect
        .poll(() => said(sandbox))
        .toEqual(["sandgate: the workload ended with exit code 4"]);
      expect(await run(sandbox, "cat", "/proc/1/comm")).toBe("init");
      expect(await run(sandbox, "ps", "-o", "stat,args")).not.toMatch(/^Z/m);
    });

    it("looks for both programs, and for the shell", async () => {
      const missing = withInit({}, { runtime: { cmd: ["nope"] } });
      await expect(start(missing)).rejects.toThrow('command "nope" is not in the image');
      const shellLess = withInit(
        { cmd: "/bin/sleep", args: ["1000"] },
        { image: IMAGES.noShell.name, runtime: { cmd: ["5"] } },
      );
      await expect(start(shellLess)).rejects.toThrow(
        'shell of the workload beside init "/bin/sh" is not in the image',
      );
    });

    it("is refused a user who is not root", async () => {
      const other = withInit({}, { runtime: { user: "app" } });
      await expect(start(other)).rejects.toThrow('user "app" cannot be had beside init');
      const ofImage = withInit({}, { image: SYSTEMD_LIKE.name, runtime: { cmd: ["id"] } });
      await expect(start(ofImage)).rejects.toThrow('user "app" cannot be had beside init');
    });
  });

  it("may come with a patch, and needs no shell", async () => {
    const image = IMAGES.noShell.name;
    const init = { cmd: "auto", args: ["1000"], env: [] };
    const patches = [
      { kind: "symlink" as const, target: "/bin/sleep", link: "/sbin/init", replace: false },
    ];
    const sandbox = allocate({ image, init }, { patches });
    // busybox goes by its name, so this is its init, which has no console to go on.
    await start(sandbox);
    const { Config, HostConfig } = await container(sandbox).inspect();
    expect(Config.Entrypoint).toEqual(["/sbin/init", "1000"]);
    expect(HostConfig.Init).toBe(false);
  });

  it.each([
    ["auto", 'init "auto" found none in the image: not /sbin/init'],
    ["/sbin/nope", 'init "/sbin/nope" is not in the image'],
    ["/etc/passwd", 'init "/etc/passwd" is not executable'],
  ])("that is not there fails the start: %s", async (cmd, message) => {
    await expect(start(withInit({ cmd }, { image: IMAGES.busybox.name }))).rejects.toThrow(message);
  });
});
