import { chmod, chown, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  type Allocation,
  EngineFailure,
  type Patch,
} from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { nextStart } from "./allocations.ts";
import { named, tmpfs, useVolumes } from "./docker-volume-harness.ts";

const MIB = 1024 * 1024;

describeWithDocker("docker engine: what is copied from the host volume", ({ host }) => {
  const harness = useVolumes(host, [IMAGES.busybox], ["data"]);
  const { engine, start, run, folder, sandbox, container } = harness;
  const sh = (allocation: Allocation, script: string) => run(allocation, "sh", "-c", script);
  const copyFile = (src: string, dst: string, rest: object = {}): Patch => ({
    kind: "copy_file",
    src,
    dst,
    mode: null,
    replace: false,
    ...rest,
  });
  const copyDir = (src: string, dst: string, replace = false): Patch => ({
    kind: "copy_dir",
    src,
    dst,
    replace,
  });

  it("is there at the first start, with its modes and links, and not brought back later", async () => {
    const top = await folder("");
    await mkdir(join(top, "tree", "ünder"), { recursive: true });
    await writeFile(join(top, "tree", "run"), "#!/bin/sh\necho ran\n");
    await chmod(join(top, "tree", "run"), 0o750);
    await chmod(join(top, "tree"), 0o700);
    await writeFile(join(top, "tree", "ünder", "empty"), "");
    await chown(join(top, "tree", "ünder", "empty"), 1000, 1000);
    await symlink("/etc/passwd", join(top, "tree", "link"));
    await symlink("run", join(top, "tree", "near"));
    await symlink("tree/run", join(top, "to-run"));
    const patches = [
      copyDir("tree", "/made/for/tree"),
      copyFile("/tree/run", "/bin/other", { mode: 0o755 }),
      copyFile("to-run", "/linked"),
      { kind: "append", path: "/made/for/tree/run", content: "echo more\n" } as const,
      { kind: "remove", path: "/made/for/tree/near" } as const,
    ];
    const one = sandbox([], {}, { patches });
    await start(one);
    expect(await sh(one, "/made/for/tree/run; other; cat /linked")).toBe(
      "ran\nmore\nran\n#!/bin/sh\necho ran",
    );
    const listed = await sh(one, "cd /made/for; ls -ldn tree tree/* tree/*/*");
    const seen = listed
      .split("\n")
      .map((line) => line.replace(/^(\S+) +\d+ (\d+) .*:\d\d /, "$1 $2 "));
    expect(seen).toEqual([
      "drwx------ 0 tree",
      "lrwxrwxrwx 0 tree/link -> /etc/passwd",
      "-rwxr-x--- 0 tree/run",
      "drwxr-xr-x 0 tree/??nder",
      "-rw-r--r-- 1000 tree/??nder/empty",
    ]);
    expect(await sh(one, "ls /made/for/tree/ünder")).toBe("empty");
    await sh(one, "echo changed >/linked");
    await engine.stop(one, 0);
    await start(nextStart(one));
    expect(await run(nextStart(one), "cat", "/linked")).toBe("changed");
  });

  it("needs replace where something is, and takes its place wholly", async () => {
    await mkdir(join(await folder(""), "small"), { recursive: true });
    await writeFile(join(await folder(""), "small", "f"), "f");
    for (const patch of [copyDir("small", "/etc"), copyFile("small/f", "/etc/passwd")])
      await expect(start(sandbox([], {}, { patches: [patch] }))).rejects.toThrow(
        /^patches\[0\]: .* is there already; it needs replace/,
      );
    const patches = [
      copyDir("small", "/etc", true),
      copyFile("small/f", "/bin/id", { replace: true }),
    ];
    const one = sandbox([], {}, { patches });
    await start(one);
    expect(await sh(one, "exec 2>&1; cat /etc/f /bin/id; ls /etc/passwd")).toMatch(
      /^ff.*No such file/,
    );
  });

  it("names the source that is not there, or is something else", async () => {
    await symlink("/etc", join(await folder(""), "out"));
    for (const [patch, why] of [
      [copyFile("no/such", "/x"), /^patches\[1\]\.src: "no\/such" does not exist/],
      [copyDir("none", "/x"), /^patches\[1\]\.src: "none" does not exist/],
      [copyFile("out/passwd", "/x"), /^patches\[1\]\.src: "out\/passwd" leaves the volume/],
      [copyFile("../x", "/x"), /^patches\[1\]\.src: /],
      [
        copyDir("small/f", "/x"),
        /^patches\[1\]\.src: "small\/f" of the host volume is no directory/,
      ],
      [copyFile("small", "/x"), /^patches\[1\]\.src: "small" of the host volume is no file/],
    ] as const) {
      const patches = [copyFile("small/f", "/y"), patch];
      const failed = await start(sandbox([], {}, { patches })).catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(EngineFailure);
      expect(String(failed).replace("EngineFailure: ", "")).toMatch(why);
    }
  });

  it("is refused where a mount would hide it", async () => {
    for (const mounts of [[named("data", "/m")], [tmpfs("/m")], [named("data", "/d"), tmpfs("/m")]])
      for (const patch of [copyFile("small/f", "/m/f"), copyDir("small", "/m/sub")])
        await expect(start(sandbox(mounts, {}, { patches: [patch] }))).rejects.toThrow(
          /would be hidden by the mount at \/m/,
        );
    const below = sandbox([named("data", "/t/f")], {}, { patches: [copyDir("small", "/t")] });
    await expect(start(below)).rejects.toThrow(/"\/t\/f" would be hidden by the mount there/);
    const scripts = { runtime: { scripts: { go: "#!/bin/sh\n" } } };
    await expect(start(sandbox([named("data", "/.msb")], scripts))).rejects.toThrow(
      /^runtime\.scripts\["go"\]: .* would be hidden by the mount at \/\.msb/,
    );
  });

  it("flows: a large file in little memory, whole or not at all while it is cut", async () => {
    const large = join(await folder(""), "large");
    await writeFile(large, "begin");
    await truncate(large, 256 * MIB - 3);
    await writeFile(large, "end", { flag: "a" });
    const one = sandbox([], {}, { patches: [copyFile("large", "/large")] });
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }, 5);
    await start(one);
    clearInterval(timer);
    expect(most).toBeLessThan(128 * MIB);
    expect(await sh(one, "ls -l /large")).toContain(String(256 * MIB));
    const ends = "dd if=/large bs=5 count=1; dd if=/large bs=1M skip=255 | grep -o 'end$'";
    expect(await sh(one, `(${ends}) 2>/dev/null`)).toBe("beginend");
    const cut = sandbox([], {}, { patches: [copyFile("large", "/large")] });
    const starting = start(cut).then(
      () => undefined,
      (error: unknown) => error,
    );
    const isMade = () =>
      container(cut)
        .inspect()
        .then(
          () => true,
          () => false,
        );
    await expect.poll(isMade, { interval: 2 }).toBe(true);
    await truncate(large, MIB);
    const failed = await starting;
    if (failed) {
      expect(failed).toBeInstanceOf(EngineFailure);
      expect(String(failed)).toMatch(/patches\[0\]\.src: "\/?large"/);
    } else {
      const size = Number((await sh(cut, "ls -ln /large")).split(/ +/)[4]);
      expect([MIB, 256 * MIB]).toContain(size);
    }
  });
});
