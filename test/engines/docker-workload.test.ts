import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { supervisor } from "../../services/orchestrator/engines/docker/supervisor.ts";
import { EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { allocate, nextStart } from "./allocations.ts";
import { useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: workloads", ({ host }) => {
  const { docker, engine, start, run, output, container } = useDocker(host, Object.values(IMAGES));
  const { busybox, configured, noShell, noCommand } = IMAGES;

  describe("under the supervisor", () => {
    it("an image's own command does not run: the sandbox idles", async () => {
      const sandbox = allocate({ image: configured.name });
      await start(sandbox);
      expect(await run(sandbox, "ps", "-o", "args")).not.toContain("entry");
      expect(await output(sandbox)).toBe("");
    });

    it.each([
      { entrypoint: null, cmd: ["other"], writes: "entry other" },
      { entrypoint: null, cmd: [], writes: "entry" },
      { entrypoint: ["sh", "-c", "echo $0 $#"], cmd: null, writes: "sh 0" },
      { entrypoint: ["sh", "-c", "echo $0"], cmd: ["mine"], writes: "mine" },
      { entrypoint: [], cmd: ["sh", "-c", "echo bare"], writes: "bare" },
    ])("entrypoint $entrypoint with cmd $cmd writes '$writes'", async ({ writes, ...runtime }) => {
      const sandbox = allocate({ image: configured.name, runtime });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toBe(writes);
    });

    it("an empty override idles", async () => {
      const sandbox = allocate({ image: configured.name, runtime: { entrypoint: [] } });
      expect(await start(sandbox)).toMatchObject({ state: "running" });
      expect(await output(sandbox)).toBe("");
    });

    it("stays up when the workload ends, whatever its exit code, and stops at once", async () => {
      const sandbox = allocate({
        runtime: { cmd: ["sh", "-c", "echo out; sleep 0.2; echo err >&2; exit 7"] },
      });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toBe("out\nerr");
      expect(await engine.list()).toContainEqual(await start(sandbox));
      expect((await start(sandbox)).state).toBe("running");
      expect(await engine.stop(sandbox, 25_000)).toMatchObject({ exitCode: 143 });
    });

    it("passes SIGTERM to the workload alone, once, and waits for its end", async () => {
      const child = `trap "echo child" TERM; while :; do sleep 0.1; done`;
      const script = `sh -c '${child}' & trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done`;
      const sandbox = allocate({ runtime: { cmd: ["sh", "-c", script] } });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toBe("up");
      await engine.stop(sandbox, 25_000);
      expect(await output(sandbox)).toBe("up\nasked");
    });

    it("starts the workload with no signal ignored or blocked", async () => {
      const cmd = ["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"];
      const sandbox = allocate({ runtime: { cmd } });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toMatch(/SigBlk:\s0{16}\nSigIgn:\s0{16}$/);
    });

    it("reaps orphans, while the workload runs and after it", async () => {
      const orphan = "sh -c 'sleep 0.1 &'";
      for (const cmd of [["sleep", "100"], ["true"], null]) {
        const sandbox = allocate({ runtime: { cmd } });
        await start(sandbox);
        await run(sandbox, "sh", "-c", `${orphan}; ${orphan}`);
        await sleep(300);
        expect(await run(sandbox, "ps", "-o", "stat,args")).not.toMatch(/^Z/m);
        expect(await run(sandbox, "ps", "-o", "args")).not.toContain("sleep 0.1");
      }
    });

    it("runs the workload again at the next start, on the disk as it was left", async () => {
      const sandbox = allocate({
        runtime: { cmd: ["sh", "-c", "echo run >> /root-file; cat /root-file"] },
      });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toBe("run");
      await engine.stop(sandbox, 0);
      const again = nextStart(sandbox);
      await start(again);
      await expect.poll(() => run(again, "cat", "/root-file")).toBe("run\nrun");
    });
  });

  describe("a command that cannot run", () => {
    it.each([
      [["nope"], 'command "nope" is not in the image'],
      [["./nope"], 'command "./nope" is not in the image'],
      [["/usr/share/plain"], 'command "/usr/share/plain" is not executable'],
      [["/usr"], 'command "/usr" is not a file'],
      [["broken"], 'command "broken" needs /bin/bash, which is not in the image'],
      [["/usr/share/plain/x"], 'command "/usr/share/plain/x" is not in the image'],
      [[""], 'command "" is not in the image'],
    ])("%j fails before the start: %s", async (cmd, message) => {
      const runtime = { entrypoint: [], cmd };
      const sandbox = allocate({ image: configured.name, runtime });
      await expect(start(sandbox)).rejects.toThrow(new RegExp(`^${message}$`));
      expect((await container(sandbox).inspect()).State.Status).toBe("created");
    });

    it("is looked up along the sandbox's own PATH and directory", async () => {
      const env = [{ key: "PATH", value: "/nowhere:/usr/bin" }];
      const image = configured.name;
      const found = allocate({ image, env, runtime: { entrypoint: ["entry"] } });
      await start(found);
      const relative = allocate({
        image,
        runtime: { entrypoint: ["./entry"], workdir: "/usr/bin" },
      });
      await start(relative);
      await expect.poll(() => output(relative)).toBe("entry");
      const hidden = allocate({ image, env, runtime: { entrypoint: ["ls"] } });
      await expect(start(hidden)).rejects.toThrow('command "ls" is not in the image');
    });

    it("does not see what a mount hides", async () => {
      const options = { nodev: false, noexec: false, nosuid: false, readonly: false };
      const mounts = [{ type: "tmpfs" as const, guest: "/usr", options, sizeMib: 1 }];
      const sandbox = allocate({ image: configured.name, mounts, runtime: { cmd: [] } });
      await expect(start(sandbox)).rejects.toThrow('command "entry" is not in the image');
    });

    it("fails for a shell, a user or an rlimit that cannot be had", async () => {
      const image = configured.name;
      const shell = allocate({ image, runtime: { shell: "/bin/zsh" } });
      await expect(start(shell)).rejects.toThrow('shell "/bin/zsh" is not in the image');
      const user = allocate({ image, runtime: { user: "nobody-here" } });
      await expect(start(user)).rejects.toThrow('user "nobody-here" is not in the image');
    });

    it("fails for a working directory that cannot be made", async () => {
      const failure = (workdir: string) =>
        start(allocate({ runtime: { workdir } })).catch((error: unknown) => error);
      expect(await failure("/etc/passwd")).toEqual(
        new EngineFailure('workdir: "/etc/passwd" is not a directory'),
      );
      expect(await failure("/etc/passwd/x")).toBeInstanceOf(EngineFailure);
    });
  });

  describe("an image without a shell", () => {
    it("runs its own command as the machine", async () => {
      const sandbox = allocate({ image: noShell.name });
      expect(await start(sandbox)).toMatchObject({ state: "running" });
      const { Config, HostConfig } = await container(sandbox).inspect();
      expect(Config.Entrypoint).toEqual(["/bin/sleep", "1000"]);
      expect(HostConfig.Init).toBe(true);
    });

    it("runs an override, and the machine ends with it", async () => {
      const sandbox = allocate({ image: noShell.name, runtime: { cmd: ["0"] } });
      await start(sandbox);
      await expect.poll(() => start(sandbox)).toMatchObject({ state: "ended", exitCode: 0 });
    });

    it("and without a command fails, and says so", async () => {
      const sandbox = allocate({ image: noCommand.name });
      await expect(start(sandbox)).rejects.toThrow(
        "the image has neither /bin/sh nor a command: nothing can run",
      );
      const missing = allocate({ image: noCommand.name, runtime: { cmd: ["/bin/nope"] } });
      await expect(start(missing)).rejects.toThrow('command "/bin/nope" is not in the image');
    });
  });

  describe("the supervisor of a daemon without an init", () => {
    it("is PID 1: reaps, outlives the workload, passes SIGTERM on", async () => {
      const { entrypoint, env } = supervisor(false);
      expect(env).toEqual({});
      const labels = (await container(await anySandbox()).inspect()).Config.Labels;
      const script = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done";
      const ids: string[] = [];
      const begin = async (Cmd: string[]) => {
        const made = await docker.createContainer({
          Image: busybox.name,
          Entrypoint: entrypoint,
          Cmd,
          Labels: { ...labels, "dev.sandgate.sandbox": "without-init" },
        });
        ids.push(made.id);
        await made.start();
        return made;
      };
      const asked = await begin(["sh", "-c", script]);
      await expect.poll(async () => String(await asked.logs({ stdout: true }))).toContain("up");
      await asked.stop({ t: 25 });
      expect(String(await asked.logs({ stdout: true }))).toContain("asked");
      expect((await asked.inspect()).State.ExitCode).toBe(143);
      const idle = await begin(["sh", "-c", "sleep 0.1 & exit 3"]);
      await sleep(500);
      expect((await idle.inspect()).State.Running).toBe(true);
      const top = (await idle.top()) as { Processes: string[][] };
      // The shell and its idle child.
      expect(top.Processes).toHaveLength(2);
      await idle.stop({ t: 25 });
      expect((await idle.inspect()).State.ExitCode).toBe(143);
    });

    async function anySandbox() {
      const sandbox = allocate();
      await start(sandbox);
      return sandbox;
    }
  });
});
