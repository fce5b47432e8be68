import { execFileSync } from "node:child_process";
import {
  chmod,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import pino from "pino";
import { describe, expect, it } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { gateFor } from "../../services/orchestrator/engines/docker/gate/gate-bytes.ts";
import { HostProcess } from "../../services/orchestrator/engines/docker/gate/held-process.ts";
import { makeMounts } from "../../services/orchestrator/engines/docker/mounts/make-mounts.ts";
import { mountIn } from "../../services/orchestrator/engines/docker/mounts/mount-program.ts";
import { planMounts } from "../../services/orchestrator/engines/docker/mounts/plan.ts";
import { locateSources } from "../../services/orchestrator/engines/docker/mounts/sources.ts";
import { stageOf } from "../../services/orchestrator/engines/docker/mounts/stage.ts";
import { type Allocation, EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { nextStart, UNHURRIED } from "./allocations.ts";
import { SILENT } from "./docker-harness.ts";
import { bind, named, tmpfs, useVolumes } from "./docker-volume-harness.ts";

/** Where the image itself leads elsewhere. */
const LINKED = {
  ...IMAGES.busybox,
  name: "sandgate-test/linked-mounts",
  links: {
    "bin/mv": "sh",
    "to/etc": "/etc",
    "to/dev": "/dev",
    "to/self": "/proc/self/cwd",
    "to/up": "../../..",
  },
};

describeWithDocker("docker engine: volumes in sandboxes", ({ host }) => {
  const harness = useVolumes(host, [IMAGES.busybox, LINKED], ["data", "more"]);
  const {
    docker,
    engine,
    installationId,
    start,
    run,
    output,
    container,
    folder,
    sandbox,
    volumes,
  } = harness;
  const sh = (allocation: Allocation, script: string) => run(allocation, "sh", "-c", script);
  const anew = (log = SILENT) =>
    createDockerEngine({ installationId, docker: { host }, log, volumes });
  /** The flags of what is mounted there, as the sandbox itself sees them. */
  const flags = async (allocation: Allocation, guest: string) =>
    (await run(allocation, "cat", "/proc/self/mountinfo"))
      .split("\n")
      .map((line) => line.split(" "))
      .findLast(([, , , , at]) => at === guest)?.[5]
      ?.split(",")
      .filter((flag) => flag !== "relatime");

  it("are shared by those that name them, and outlive them", async () => {
    const one = sandbox([named("data", "/data"), bind("/", "/host")]);
    const other = sandbox([named("data", "/elsewhere/data")]);
    await Promise.all([start(one), start(other)]);
    expect(await sh(one, "echo one >/data/f; cat /data/f; echo h >/host/h")).toBe("one");
    expect(await sh(other, "cat /elsewhere/data/f; echo two >>/elsewhere/data/f")).toBe("one");
    expect(await run(one, "cat", "/data/f")).toBe("one\ntwo");
    expect(await flags(one, "/data")).toEqual(["rw"]);
    expect(await sh(one, "ls -A /dev/.sandgate-volumes; grep -c sandgate-vol /proc/mounts")).toBe(
      "0",
    );
    await engine.remove(one.sandboxId);
    expect(await readFile(join(await folder("data"), "f"), "utf8")).toBe("one\ntwo\n");
    expect(await readFile(join(await folder(""), "h"), "utf8")).toBe("h\n");
  });

  it("are there again at the next start, as they are by then", async () => {
    const hostFolder = await folder("");
    await mkdir(join(hostFolder, "again"));
    const one = sandbox([named("data", "/d"), bind("again", "/again")]);
    await start(one);
    await sh(one, "echo 1 >/d/kept; echo 1 >/again/old");
    await engine.stop(one, 0);
    // Another directory under the same path.
    await rename(join(hostFolder, "again"), join(hostFolder, "before"));
    await mkdir(join(hostFolder, "again"));
    const second = nextStart(one);
    await start(second);
    expect(await sh(second, "cat /d/kept; ls -A /again")).toBe("1");
    await engine.stop(second, 0);
    await rm(join(hostFolder, "again"), { recursive: true });
    const third = nextStart(second);
    await expect(start(third)).rejects.toThrow(/^mounts\[1\]\.host: .*"again" does not exist/);
    await mkdir(join(hostFolder, "again"));
    expect(await start(third)).toMatchObject({ state: "running" });
  });

  it("take readonly, noexec, nosuid and nodev, each by itself", async () => {
    const data = await folder("data");
    const gate = gateFor(process.arch === "x64" ? "amd64" : process.arch) ?? Buffer.alloc(0);
    await writeFile(join(data, "suid"), gate);
    await chmod(join(data, "suid"), 0o4755);
    await copyFile("/bin/busybox", join(data, "true"));
    execFileSync("mknod", ["-m", "666", join(data, "null"), "c", "1", "3"]);
    // A program that waits, so that its user can be looked at.
    const cmd = ["sh", "-c", "/v/suid /bin/true & sleep 1000"];
    const trial = async (option: object) => {
      const one = sandbox([named("data", "/v", option)], { runtime: { cmd, user: "app" } });
      await start(one);
      const uid = async () =>
        /Name:\s+suid\n.*?Uid:\s+(\d+\s+\d+)/s.exec(await sh(one, "cat /proc/[0-9]*/status"))?.[1];
      const [written, device, ran] = [
        await sh(one, "touch /v/new"),
        await sh(one, "echo x >/v/null"),
        await sh(one, "/v/true"),
      ];
      if (!("noexec" in option)) await expect.poll(uid).toBeDefined();
      const answer = { written, device, ran, uid: await uid(), flags: await flags(one, "/v") };
      await engine.remove(one.sandboxId);
      return answer;
    };
    const free = { written: "", device: "", ran: "", uid: "1000\t0" };
    expect(await trial({})).toEqual({ ...free, flags: ["rw"] });
    expect(await trial({ readonly: true })).toEqual({
      ...free,
      written: expect.stringMatching(/Read-only file system/),
      flags: ["ro"],
    });
    expect(await trial({ noexec: true })).toEqual({
      ...free,
      ran: expect.stringMatching(/Permission denied/),
      uid: undefined,
      flags: ["rw", "noexec"],
    });
    expect(await trial({ nosuid: true })).toEqual({
      ...free,
      uid: "1000\t1000",
      flags: ["rw", "nosuid"],
    });
    expect(await trial({ nodev: true })).toEqual({
      ...free,
      device: expect.stringMatching(/Permission denied/),
      flags: ["rw", "nodev"],
    });
    const all = { readonly: true, noexec: true, nosuid: true, nodev: true };
    expect((await trial(all)).flags).toEqual(["ro", "nosuid", "nodev", "noexec"]);
  });

  it("are nosuid and nodev in a restricted sandbox, whatever is mounted", async () => {
    const mounts = [named("data", "/a"), bind("", "/a/b"), tmpfs("/a/b/c"), tmpfs("/t")];
    const one = sandbox(mounts, { securityProfile: "restricted" });
    await start(one);
    for (const { guest } of mounts)
      expect(await flags(one, guest)).toEqual(["rw", "nosuid", "nodev"]);
  });

  it("are read-only where they are full, and the log says so", async () => {
    const lines: string[] = [];
    const write = (chunk: Buffer, _: string, done: () => void) => {
      lines.push(chunk.toString());
      done();
    };
    const tried = anew(pino(new Writable({ write })));
    const plain = sandbox([named("data", "/d"), named("more", "/m")]);
    const { data, ...rest } = plain.volumes;
    const full = { volumeId: data?.volumeId ?? "", full: true };
    const one = { ...plain, volumes: { ...rest, data: full } };
    await tried.ensureRunning(one, UNHURRIED);
    expect(await flags(one, "/d")).toEqual(["ro"]);
    expect(await flags(one, "/m")).toEqual(["rw"]);
    const said = lines.filter((line) => line.includes("full"));
    expect(said).toHaveLength(1);
    expect(JSON.parse(said[0] ?? "")).toMatchObject({
      sandbox_id: one.sandboxId,
      volume_id: full.volumeId,
    });
  });

  it("lie in one another, where what was not there is made, in read-only ones too", async () => {
    await mkdir(join(await folder(""), "sub"));
    await writeFile(join(await folder(""), "sub", "one-file"), "content");
    const one = sandbox([
      tmpfs("/new/t", { readonly: true }),
      named("more", "/new/t/in/tmpfs"),
      named("data", "/v", { readonly: true }),
      bind("sub", "/v/deep/er"),
      tmpfs("/v/deep/er/t", { readonly: true }),
      named("more", "/v/deep/er/t/more", { noexec: true }),
      bind("/sub/one-file", "/v/file", { readonly: true }),
      bind("sub/one-file", "/etc/hosts"),
    ]);
    await start(one);
    expect(await sh(one, "ls -ld /v/deep/er/t /new")).toMatch(/^drwxr-xr-x .*\ndrwxrwxrwt /);
    const write = (path: string) => sh(one, `echo x >${path}`);
    for (const path of ["/v/x", "/v/deep/x", "/v/file", "/new/t/x", "/v/deep/er/t/x"])
      expect(await write(path), path).toMatch(/Read-only file system/);
    for (const path of ["/v/deep/er/x", "/v/deep/er/t/more/x", "/new/t/in/tmpfs/y", "/new/x"])
      expect(await write(path), path).toBe("");
    expect(await run(one, "cat", "/v/file", "/etc/hosts")).toBe("contentcontent");
    expect((await readdir(await folder("more"))).toSorted()).toEqual(["x", "y"]);
    expect(await flags(one, "/v/deep/er/t/more")).toEqual(["rw", "noexec"]);
    await engine.stop(one, 0);
    expect(await start(nextStart(one))).toMatchObject({ state: "running" });
    expect(await sh(nextStart(one), "cat /v/deep/er/t/more/x; cat /v/file")).toBe("x\ncontent");
  });

  it("hold the working directory and the command, where these are in them", async () => {
    const cmd = ["./own", "arg"];
    const one = sandbox([named("data", "/w")], { runtime: { workdir: "/w/project/a", cmd } });
    await expect(start(one)).rejects.toThrow(/command ".\/own" is not in the image/);
    await mkdir(join(await folder("data"), "project", "a"), { recursive: true });
    const program = join(await folder("data"), "project", "a", "own");
    await writeFile(program, '#!/bin/sh\necho "$1 in $PWD" | cat - >said; cat said\nrm nothing\n');
    await expect(start(one)).rejects.toThrow(/command ".\/own" is not executable/);
    await chmod(program, 0o755);
    await start(one);
    await expect.poll(() => output(one)).toContain("arg in /w/project/a");
    expect(await readFile(join(await folder("data"), "project/a/said"), "utf8")).toMatch(/^arg/);
    const made = sandbox([named("more", "/m")], {
      runtime: { workdir: "/m/not/there", cmd: ["touch", "here"] },
    });
    await start(made);
    await expect
      .poll(async () => readdir(join(await folder("more"), "not/there")))
      .toEqual(["here"]);
  });

  it("that are not there fail the start by the field's name, and leave nothing behind", async () => {
    const before = await readdir(harness.root, { recursive: true });
    const missing = sandbox([named("data", "/d/e"), bind("no/such", "/h")]);
    await expect(start(missing)).rejects.toThrow(EngineFailure);
    await expect(start(missing)).rejects.toThrow(
      'mounts[1].host: cannot be mounted at /h: "no/such" does not exist',
    );
    const { State } = await container(missing).inspect();
    expect(new Date(State.StartedAt).getTime()).toBeLessThan(0);
    await symlink("/etc", join(await folder(""), "out"));
    const outside = sandbox([bind("out/passwd", "/p")]);
    await expect(start(outside)).rejects.toThrow(/^mounts\[0\]\.host: .* leaves the volume/);
    await rm(join(await folder(""), "out"));
    const gone = { ...sandbox([named("data", "/d")]), volumes: {} };
    await expect(start(gone)).rejects.toThrow(/^mounts\[0\]\.name: there is no volume "data"/);
    expect(await readdir(harness.root, { recursive: true })).toEqual(before);
    for (const { sandboxId } of [missing, outside, gone]) {
      await engine.remove(sandboxId);
      const label = [`dev.sandgate.sandbox=${sandboxId}`];
      expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
    }
  });

  describe("are never mounted", () => {
    it.each([
      "/dev",
      "/dev/.sandgate",
      "/dev/.sandgate-volumes/x",
      "/dev/x/y",
      "/proc/1",
      "/sys/x",
    ])("at %s", async (guest) => {
      for (const mount of [named("data", guest), bind("/", `${guest}/`)])
        await expect(start(sandbox([mount]))).rejects.toThrow(/is not on the sandbox's disk/);
      const beside = [named("data", "/d"), tmpfs("/dev/.sandgate-volumes")];
      await expect(start(sandbox(beside))).rejects.toThrow(/it is taken/);
    });

    it.each([
      ["/to/etc", "/to/etc"],
      ["/to/etc/x/y", "/to/etc"],
      ["/to/dev/.sandgate", "/to/dev"],
      ["/to/self/x", "/to/self"],
      ["/to/up/x", "/to/up"],
    ])("behind a link of the image, as %s", async (guest, at) => {
      const one = sandbox([named("data", guest)], { image: LINKED.name });
      await expect(start(one)).rejects.toThrow(
        `mounts[0].guest: "${guest}" lies behind a link, "${at}"`,
      );
      expect((await container(one).inspect()).State.Running).toBe(false);
    });

    it("behind a link that the sandbox made, at a later start", async () => {
      const one = sandbox([named("data", "/x/y")], { image: LINKED.name });
      await start(one);
      expect(await sh(one, "mv /x /z && ln -s /dev /x && mkdir /dev/y && echo done")).toBe("done");
      await engine.stop(one, 0);
      const second = nextStart(one);
      await expect(start(second)).rejects.toThrow(
        'mounts[0].guest: "/x/y" lies behind a link, "/x"',
      );
      const { state } =
        (await engine.list()).find(({ sandboxId }) => sandboxId === one.sandboxId) ?? {};
      expect(state).toBe("ended");
    });

    it("behind a link in a volume", async () => {
      const data = await folder("data");
      await symlink("/etc", join(data, "to-etc"));
      await symlink("/dev", join(data, "to-dev"));
      await writeFile(join(data, "plain"), "");
      for (const [guest, why] of [
        ["/v/to-etc", /lies behind a link, "\/v\/to-etc"/],
        ["/v/to-dev/.sandgate/gate", /lies behind a link, "\/v\/to-dev"/],
        ["/v/plain", /is no directory/],
        ["/v/plain/x", /lies behind "\/v\/plain", which is no directory/],
      ] as const) {
        const one = sandbox([named("data", "/v"), named("more", guest)]);
        await expect(start(one), guest).rejects.toThrow(why);
        expect((await container(one).inspect()).State.Running, guest).toBe(false);
      }
      for (const name of ["to-etc", "to-dev", "plain"]) await rm(join(data, name));
    });
  });

  describe("after a crash", () => {
    const hold = async (one: Allocation) => {
      await start(one);
      await engine.stop(one, 0);
      await container(one).start();
      const pid = (await container(one).inspect()).State.Pid;
      const isHeld = async () =>
        (await readFile(`/proc/${pid}/cmdline`, "latin1")).startsWith("/dev/.sandgate/gate");
      await expect.poll(isHeld).toBe(true);
      return pid;
    };

    it("are mounted in a machine that was started and never let through", async () => {
      const one = sandbox([named("data", "/d", { readonly: true })]);
      await hold(one);
      await anew().ensureRunning(one, UNHURRIED);
      expect(await flags(one, "/d")).toEqual(["ro"]);
      const { Pid } = (await container(one).inspect()).State;
      expect(await anew().ensureRunning(one, UNHURRIED)).toMatchObject({ state: "running" });
      expect((await container(one).inspect()).State.Pid).toBe(Pid);
    });

    it("are taken up where they were left, and made once", async () => {
      const mounts = [named("data", "/d", { readonly: true }), named("more", "/d/sub")];
      for (const how of ["before the first flags", "before the gate"] as const) {
        const one = sandbox(mounts);
        const first = await HostProcess.of(await hold(one));
        const plan = planMounts(one);
        if (how === "before the gate") {
          const sources = await locateSources(volumes, one.orgId, plan);
          await makeMounts(first, { plan, sources }, "/");
          await sources.close();
        } else {
          const stage = stageOf(one.volumes.data?.volumeId ?? "");
          await mountIn(first, ["-o", "bind,rw", stage, "/d"]);
        }
        await first.close();
        await anew().ensureRunning(one, UNHURRIED);
        expect(await flags(one, "/d")).toEqual(["ro"]);
        expect(await flags(one, "/d/sub")).toEqual(["rw"]);
        const shown = await sh(one, "cat /proc/self/mountinfo");
        expect(shown.match(/ \/d(\/sub)? r[ow]/g), how).toHaveLength(2);
      }
    });

    it("keep a machine from running that somebody let through without them", async () => {
      const one = sandbox([named("data", "/d", { readonly: true })]);
      const pid = await hold(one);
      process.kill(pid, "SIGUSR1");
      const isPast = async () =>
        !(await readFile(`/proc/${pid}/cmdline`, "latin1")).startsWith("/dev/.sandgate/gate");
      await expect.poll(isPast).toBe(true);
      await expect(anew().ensureRunning(one, UNHURRIED)).rejects.toThrow(/without its volumes/);
      expect((await container(one).inspect()).State.Running).toBe(false);
    });
  });
});
