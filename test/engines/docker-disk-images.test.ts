import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { v7 as uuid } from "uuid";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import {
  becomes,
  HostProcess,
} from "../../services/orchestrator/engines/docker/gate/held-process.ts";
import {
  attachLoop,
  type LoopDevice,
  listLoops,
  parseLoop,
} from "../../services/orchestrator/engines/docker/mounts/loop-devices.ts";
import { makeMounts } from "../../services/orchestrator/engines/docker/mounts/make-mounts.ts";
import { mountIn } from "../../services/orchestrator/engines/docker/mounts/mount-program.ts";
import { planMounts } from "../../services/orchestrator/engines/docker/mounts/plan.ts";
import { locateSources } from "../../services/orchestrator/engines/docker/mounts/sources.ts";
import { stagedMount } from "../../services/orchestrator/engines/docker/mounts/stage.ts";
import { type Allocation, EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { nextStart, UNHURRIED } from "./allocations.ts";
import { SILENT } from "./docker-harness.ts";
import { bind, image, named, tmpfs, useVolumes } from "./docker-volume-harness.ts";

const CONTROL = "/dev/loop-control";
const hasLoops = existsSync(CONTROL) && existsSync("/usr/sbin/mkfs.ext4");
const MIB = 1024 * 1024;

describeWithDocker("docker engine: disk images by default", ({ host }) => {
  const { engine, docker, sandbox, start, folder } = useVolumes(host, [IMAGES.busybox], []);

  it("are refused", async () => {
    await engine.mounting();
    expect(engine.features()).toContain("mounts.bind");
    expect(engine.features().filter((each) => each.startsWith("mounts.disk_image"))).toEqual([]);
    await writeFile(join(await folder(""), "any"), "");
    const one = sandbox([image("any", "/d")]);
    await expect(start(one)).rejects.toThrow(/disk images cannot be mounted here: its operator/);
    const { sandboxId, generation } = one;
    const made = docker.getContainer(`sbx-${sandboxId}-${generation}`);
    expect((await made.inspect().catch(() => undefined))?.State.Running ?? false).toBe(false);
  });
});

describe("the host's list of loop devices", () => {
  it.each([
    [
      "/dev/loop3 1 0 42 \\x20\\x20254:1\\x20\\x20 \\x207:3\\x20 /a\\x20b/\\xc3\\xa9\\x20(deleted)",
      {
        path: "/dev/loop3",
        number: 0x703n,
        image: { dev: 0xfe01n, ino: 42n },
        file: "/a b/é (deleted)",
      },
      { major: 7, minor: 3, autoclear: true, readonly: false },
    ],
    [
      "/dev/loop700 0 1 18446744073709551615 259:1048575 7:700 /é",
      { path: "/dev/loop700", number: 0x2007bcn, file: "/é" },
      { image: { dev: 0xfff103ffn, ino: 18446744073709551615n }, autoclear: false, readonly: true },
    ],
  ])("%s", (line, one, other) => {
    expect(parseLoop(line)).toEqual([expect.objectContaining({ ...one, ...other })]);
  });

  it("passes over one that is detached meanwhile", () => {
    expect(parseLoop("/dev/loop3 0 0   7:3 ")).toEqual([]);
  });
});

describe.runIf(!hasLoops)("docker engine: disk images", () => {
  it.skip(`[skipped: there is no ${CONTROL}, or no mkfs.ext4]`, () => undefined);
});

(hasLoops ? describeWithDocker : describe.skip)("docker engine: disk images", (given) => {
  const { host } = given as { host: string };
  const harness = useVolumes(host, [IMAGES.busybox], ["data"], { diskImages: "loop" });
  const { engine, installationId, volumes, root, orgId } = harness;
  const { start, run, container, sandbox, folder } = harness;
  const sh = (allocation: Allocation, script: string) => run(allocation, "sh", "-c", script);
  const hostId = sandbox([]).volumes[""]?.volumeId ?? "";
  const anew = () =>
    createDockerEngine({
      installationId,
      docker: { host, diskImages: "loop" },
      log: SILENT,
      volumes,
    });
  const at = async (name: string) => join(await folder(""), name);

  async function ext4(name: string, mib = 4): Promise<string> {
    const path = await at(name);
    await writeFile(path, "");
    await truncate(path, mib * MIB);
    execFileSync("mkfs.ext4", ["-q", "-F", path]);
    return path;
  }

  /** The devices that have a file of the test's own behind them. */
  const ours = async () => (await listLoops()).filter(({ file }) => file.startsWith(root));
  const allGone = async () => {
    await becomes(async () => (await ours()).length === 0, 20_000);
    expect(await ours()).toEqual([]);
  };
  const flags = async (allocation: Allocation, guest: string) =>
    (await run(allocation, "cat", "/proc/self/mountinfo"))
      .split("\n")
      .map((line) => line.split(" "))
      .findLast(([, , , , where]) => where === guest)?.[5]
      ?.split(",")
      .filter((flag) => flag !== "relatime");
  const refusal = async (allocation: Allocation) => {
    const up = await start(allocation).catch((error: unknown) => error);
    expect(up).toBeInstanceOf(EngineFailure);
    return (up as Error).message;
  };
  /** What is in an image, by a mount of the test's own. */
  async function contents<T>(path: string, look: (at: string) => Promise<T>): Promise<T> {
    const place = join(root, "look");
    await mkdir(place, { recursive: true });
    execFileSync("mount", ["-o", "loop,ro", path, place]);
    try {
      return await look(place);
    } finally {
      execFileSync("umount", [place]);
    }
  }

  beforeAll(async () => {
    expect(await engine.mounting()).toMatchObject({ possible: true, images: { possible: true } });
  });
  afterEach(async () => {
    for (const { sandboxId } of await engine.list()) await engine.remove(sandboxId);
    await allGone();
  }, 30_000);

  it("are claimed once one was mounted, and nothing is left of that", async () => {
    const tried = anew();
    expect(tried.features()).not.toContain("mounts.disk_image");
    await tried.mounting();
    expect(tried.features()).toContain("mounts.disk_image");
    expect(await ours()).toEqual([]);
  });

  it("hold what was written, in them and not beside them, over starts and after the end", async () => {
    const path = await ext4("kept.img");
    const one = sandbox([image("kept.img", "/d")]);
    await start(one);
    expect(await sh(one, "echo 1 >/d/f; cat /d/f; ls -A /dev/.sandgate-volumes")).toBe("1");
    expect(await flags(one, "/d")).toEqual(["rw", "nosuid", "nodev"]);
    expect((await ours()).map(({ autoclear, readonly }) => [autoclear, readonly])).toEqual([
      [true, false],
    ]);
    await engine.stop(one, 0);
    const second = nextStart(one);
    await start(second);
    expect(await sh(second, "cat /d/f; echo 2 >>/d/f")).toBe("1");
    await engine.remove(second.sandboxId);
    await allGone();
    expect(await contents(path, (place) => readFile(join(place, "f"), "utf8"))).toBe("1\n2\n");
    expect(await readdir(join(path, "../../staging"))).toEqual([]);
    const { bytes } = await volumes.measure({ orgId, volumeId: hostId }, UNHURRIED);
    expect(Number(bytes)).toBeGreaterThanOrEqual((await stat(path)).blocks * 512);
  });

  it("take readonly and noexec, and are without set-user-ids and devices whatever is asked", async () => {
    const path = await ext4("flags.img");
    const place = join(root, "fill");
    await mkdir(place);
    execFileSync("mount", ["-o", "loop", path, place]);
    await copyFile("/bin/busybox", join(place, "true"));
    execFileSync("mknod", ["-m", "666", join(place, "null"), "c", "1", "3"]);
    execFileSync("umount", [place]);
    const one = sandbox([image("flags.img", "/d", { readonly: true, noexec: true })]);
    await start(one);
    expect(await flags(one, "/d")).toEqual(["ro", "nosuid", "nodev", "noexec"]);
    expect(await sh(one, "touch /d/new")).toMatch(/Read-only file system/);
    expect(await sh(one, "/d/true")).toMatch(/Permission denied/);
    expect(await sh(one, "echo x >/d/null")).toMatch(/ermission denied|Read-only/);
    expect((await ours()).map(({ readonly }) => readonly)).toEqual([true]);
    await engine.remove(one.sandboxId);
    const two = sandbox([image("flags.img", "/d")]);
    await start(two);
    expect(await sh(two, "/d/true && echo x >/d/null")).toMatch(/ermission denied/);
    await engine.remove(two.sandboxId);
  });

  it("are no device that the sandbox could open", async () => {
    await ext4("device.img");
    const one = sandbox([image("device.img", "/d")]);
    await start(one);
    const [{ major, minor } = {} as LoopDevice] = await ours();
    const made = await sh(
      one,
      `mknod /raw b ${major} ${minor}; head -c 1 /raw | wc -c; ls -l /raw`,
    );
    expect(made).toMatch(/Operation not permitted/);
    expect(await sh(one, "find /dev -type b")).toBe("");
    await engine.remove(one.sandboxId);
  });

  it("are shared by those who only read, and never while one writes", async () => {
    await ext4("shared.img");
    const mount = (readonly: boolean) => sandbox([image("/shared.img", "/d", { readonly })]);
    const readers = [mount(true), mount(true)];
    await Promise.all(readers.map((one) => start(one)));
    expect(await refusal(mount(false))).toMatch(
      /^mounts\[0\]\.host: "\/shared.img" is mounted already/,
    );
    await Promise.all(readers.map(({ sandboxId }) => engine.remove(sandboxId)));
    const writer = mount(false);
    await start(writer);
    for (const readonly of [true, false])
      expect(await refusal(mount(readonly))).toMatch(/^mounts\[0\]\.host: .* is mounted already/);
    expect(await sh(writer, "echo still >/d/f; cat /d/f")).toBe("still");
    await engine.remove(writer.sandboxId);
    const twice = sandbox([image("shared.img", "/a"), image("shared.img", "/b")]);
    expect(await refusal(twice)).toMatch(/^mounts\[1\]\.host: .* is mounted already/);
    await engine.remove(twice.sandboxId);
    await allGone();
  }, 60_000);

  it("of several that begin at once, one writes", async () => {
    await ext4("raced.img");
    const all = [1, 2, 3].map(() => sandbox([image("raced.img", "/d")]));
    const ends = await Promise.allSettled(all.map((one) => start(one)));
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const { sandboxId } of all) await engine.remove(sandboxId);
    await allGone();
  }, 60_000);

  it("lie in volumes, and volumes in them", async () => {
    await ext4("nest.img");
    await mkdir(await at("sub"));
    const mounts = [
      named("data", "/v"),
      image("nest.img", "/v/disk"),
      bind("sub", "/v/disk/bind"),
      tmpfs("/v/disk/tmp"),
    ];
    const one = sandbox(mounts);
    await start(one);
    expect(await sh(one, "echo b >/v/disk/bind/f; echo d >/v/disk/f; touch /v/disk/tmp/t")).toBe(
      "",
    );
    expect(await readFile(await at("sub/f"), "utf8")).toBe("b\n");
    await engine.remove(one.sandboxId);
    const inside = await contents(await at("nest.img"), (place) => readdir(place));
    expect(inside.toSorted()).toEqual(["bind", "f", "lost+found", "tmp"]);
    const sealed = [image("nest.img", "/d", { readonly: true }), tmpfs("/d/new")];
    expect(await refusal(sandbox(sealed))).toMatch(/^mounts\[1\]\.guest: "\/d\/new" is not there/);
  });

  it.each([
    ["mkfs.xfs", "xfs", ["-q", "-f"], 320],
    ["mkfs.ext4", "ext4", ["-q", "-F", "-O", "metadata_csum"], 4],
    ["mkfs.ext3", "ext3", ["-q", "-F"], 4],
    ["mkfs.ext2", "ext2", ["-q", "-F"], 4],
  ])("made by %s are found to be what they are", async (program, type, args, mib) => {
    if (!existsSync(`/usr/sbin/${program}`)) return console.warn(`without ${program}: not tried`);
    const path = await at(`${type}.img`);
    await writeFile(path, "");
    await truncate(path, mib * MIB);
    execFileSync(program, [...args, path]);
    for (const fstype of [null, type]) {
      const one = sandbox([image(`${type}.img`, "/d", {}, { fstype })]);
      await start(one);
      expect(await sh(one, "grep ' /d ' /proc/mounts | cut -d' ' -f3; echo x >/d/f")).toBe(type);
      await engine.remove(one.sandboxId);
    }
    await allGone();
  });

  it("of squashfs are read", async () => {
    if (!existsSync("/usr/bin/mksquashfs")) return console.warn("without mksquashfs: not tried");
    const tree = join(root, "tree");
    await mkdir(tree);
    await writeFile(join(tree, "f"), "squashed");
    execFileSync("mksquashfs", [tree, await at("s.img"), "-quiet", "-no-progress"], {
      stdio: "ignore",
    });
    const one = sandbox([image("s.img", "/d", { readonly: true }, { fstype: "squashfs" })]);
    await start(one);
    expect(await run(one, "cat", "/d/f")).toBe("squashed");
    await engine.remove(one.sandboxId);
    const other = sandbox([image("s.img", "/d")]);
    expect(await refusal(other)).toMatch(/^mounts\[0\]\.options\.readonly: a squashfs image/);
    await allGone();
  });

  it.each<[string, RegExp, Parameters<typeof image>]>([
    ["missing", /^mounts\[0\]\.host: .*does not exist/, ["nowhere.img", "/d"]],
    ["a directory", /^mounts\[0\]\.host: "dir" is no file/, ["dir", "/d"]],
    ["a pipe", /^mounts\[0\]\.host: .*neither file nor directory/, ["pipe", "/d"]],
    ["led out of its volume", /^mounts\[0\]\.host: .*leaves the volume/, ["out", "/d"]],
    ["no file system", /^mounts\[0\]\.host: .*none was found/, ["noise", "/d"]],
    ["empty", /^mounts\[0\]\.host: .*none was found/, ["empty", "/d"]],
    ["too small", /^mounts\[0\]\.host: holds no ext4 file system/, ["short", "/d"]],
    ["partitions", /^mounts\[0\]\.host: .*none was found/, ["parted", "/d"]],
    ["another", /^mounts\[0\]\.host: .*it holds "swap"/, ["swap", "/d"]],
    [
      "not what was said",
      /^mounts\[0\]\.host: holds no xfs/,
      ["short", "/d", {}, { fstype: "xfs" }],
    ],
    [
      "btrfs",
      /^mounts\[0\]\.fstype: "btrfs" is none of ext2/,
      ["noise", "/d", {}, { fstype: "btrfs" }],
    ],
    ["qcow2", /^mounts\[0\]\.format: qcow2/, ["noise", "/d", {}, { format: "qcow2" }]],
  ])("%s: are refused by name", async (_what, why, args) => {
    await mkdir(await at("dir"), { recursive: true });
    if (!existsSync(await at("pipe"))) execFileSync("mkfifo", [await at("pipe")]);
    await symlink("/etc/hostname", await at("out")).catch(() => undefined);
    await writeFile(await at("noise"), Buffer.alloc(MIB, "noise"));
    await writeFile(await at("empty"), "");
    await ext4("short");
    await truncate(await at("short"), 64 * 1024);
    await writeFile(await at("parted"), partitioned());
    await writeFile(await at("swap"), Buffer.alloc(MIB));
    execFileSync("mkswap", [await at("swap")], { stdio: "ignore" });
    const one = sandbox([image(...args)]);
    expect(await refusal(one)).toMatch(why);
    await engine.remove(one.sandboxId);
    await allGone();
  });

  it("that were not unmounted cleanly are mounted writable first", async () => {
    await ext4("clean.img");
    const one = sandbox([image("clean.img", "/d")]);
    await start(one);
    await sh(one, "echo 1 >/d/f; sync");
    // As after a power failure.
    await copyFile(await at("clean.img"), await at("unclean.img"));
    const reader = sandbox([image("unclean.img", "/d", { readonly: true })]);
    expect(await refusal(reader)).toMatch(/^mounts\[0\]\.host: was not unmounted cleanly/);
    const writer = sandbox([image("unclean.img", "/d")]);
    await start(writer);
    expect(await run(writer, "cat", "/d/f")).toBe("1");
    await engine.remove(writer.sandboxId);
    expect(await start(nextStart(reader))).toMatchObject({ state: "running" });
  });

  it("cannot bring the host down by what they say of faults", async () => {
    const path = await ext4("panic.img");
    execFileSync("tune2fs", ["-e", "panic", "-E", "mount_opts=errors=panic", path], {
      stdio: "ignore",
    });
    const one = sandbox([image("panic.img", "/d")]);
    await start(one);
    expect(await sh(one, "grep ' /d ' /proc/mounts")).toContain("errors=remount-ro");
    await engine.remove(one.sandboxId);
  });

  it("are detached with their container, also where it is killed behind our back", async () => {
    await ext4("killed.img");
    const one = sandbox([image("killed.img", "/d")]);
    await start(one);
    const { Pid } = (await container(one).inspect()).State;
    process.kill(Pid, "SIGKILL");
    await allGone();
    await expect.poll(async () => (await container(one).inspect()).State.Running).toBe(false);
    const second = nextStart(one);
    await start(second);
    expect(await flags(second, "/d")).toEqual(["rw", "nosuid", "nodev"]);
    await engine.remove(second.sandboxId);
  });

  it("are what was looked up, whatever takes their place meanwhile", async () => {
    const [here, aside] = [await at("turned.img"), await at("turned-aside.img")];
    await ext4("turned.img");
    await contents(here, async () => undefined);
    const decoy = join(root, "decoy.img");
    await copyFile(here, decoy);
    const before = await readFile(decoy);
    let on = true;
    const turned = (async () => {
      for (let i = 0; on; i += 1) {
        await sleep(i % 23);
        await rename(here, aside);
        if (i % 2) await symlink(decoy, here);
        else execFileSync("mkfifo", [here]);
        await sleep(i % 7);
        await rename(aside, here);
      }
    })();
    let ups = 0;
    try {
      for (let i = 0; i < 10; i += 1) {
        const one = sandbox([image("turned.img", "/d")]);
        const up = await start(one).catch((error: unknown) => error);
        if (up instanceof Error) expect(up).toBeInstanceOf(EngineFailure);
        else {
          ups += 1;
          await sh(one, `echo ${i} >/d/${i}`);
        }
        await engine.remove(one.sandboxId);
      }
    } finally {
      on = false;
      await turned;
    }
    await allGone();
    expect((await contents(here, (place) => readdir(place))).length - 1).toBe(ups);
    expect(ups).toBeGreaterThan(0);
    expect(await readFile(decoy)).toEqual(before);
  }, 90_000);

  it("go with the machine, and are mounted once, where a process was killed after it had mounted one", async () => {
    await ext4("half.img");
    const one = sandbox([image("half.img", "/d")]);
    const plan = planMounts(one);
    const staged = stagedMount(hostId, await folder(""));
    const made = await harness.docker.createContainer({
      Image: IMAGES.busybox.name,
      Entrypoint: ["/bin/sleep", "100000"],
      HostConfig: { NetworkMode: "none", Mounts: [staged] },
    });
    await made.start();
    const first = await HostProcess.of((await made.inspect()).State.Pid);
    const sources = await locateSources(volumes, orgId, plan);
    try {
      const [mount] = plan;
      if (mount?.kind !== "disk") throw new Error("this is no disk image");
      const path = await sources.withName(mount, (file) => attachLoop(file, false));
      const [{ major, minor } = {} as LoopDevice] = await ours();
      const inside = `/proc/${first.pid}/root`;
      const node = "/dev/.sandgate-volumes/disk";
      execFileSync("mknod", [`${inside}${node}`, "b", `${major}`, `${minor}`]);
      await mkdir(`${inside}/d`);
      await mountIn(first, ["-t", "ext4", "-o", "rw,nosuid,nodev", node, "/d"]);
      await makeMounts(first, { plan, sources }, "/");
      expect(await ours()).toMatchObject([{ path, autoclear: true }]);
      expect(await readdir(`${inside}/dev/.sandgate-volumes`)).toEqual([]);
    } finally {
      await sources.close();
      await first.close();
      await made.remove({ force: true });
    }
    await allGone();
  });

  it("are freed where a process was killed before it had mounted one", async () => {
    await ext4("left.img");
    const { handle } = await volumes.locate({ orgId, volumeId: hostId }, "left.img");
    const key = { orgId, volumeId: hostId };
    // What is left by a process that dies between attaching and mounting.
    await volumes.withSecondName(key, handle, (path) => attachLoop(path, false));
    await handle.close();
    expect(await ours()).toMatchObject([{ autoclear: false }]);
    const one = sandbox([image("left.img", "/d")]);
    await start(one);
    expect((await ours()).map(({ autoclear }) => autoclear)).toEqual([true]);
    await engine.remove(one.sandboxId);
    await allGone();
    const again = await volumes.locate(key, "left.img");
    await volumes.withSecondName(key, again.handle, (path) => attachLoop(path, false));
    await again.handle.close();
    await anew().mounting();
    await allGone();
  });

  it("are left to another process that has just attached them, for as long as it lives", async () => {
    const path = await ext4("other.img");
    const other = spawn("sleep", ["1000"]);
    const start = (await readFile(`/proc/${other.pid}/stat`, "utf8")).split(" ")[21];
    const second = join(path, "../../staging", `removed-${uuid()}.${other.pid}.${start}`);
    await link(path, second);
    await attachLoop(second, false);
    await rm(second);
    await anew().mounting();
    expect(await ours()).toHaveLength(1);
    other.kill();
    await once(other, "exit");
    await anew().mounting();
    expect(await ours()).toEqual([]);
  });
});

/** A partition table with one partition of Linux. */
function partitioned(): Buffer {
  const disk = Buffer.alloc(MIB);
  disk[446 + 4] = 0x83;
  disk.writeUInt32LE(64, 446 + 8);
  disk.writeUInt32LE(1024, 446 + 12);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}
