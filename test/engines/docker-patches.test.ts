import { describe, expect, it } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import type { Allocation, Patch } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, type TestImage } from "../support/images.ts";
import { allocate, nextStart, type SpecChanges, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";

/** A disk with everything that patches may meet. */
const FURNISHED: TestImage = {
  name: "sandgate-test/furnished",
  applets: [...IMAGES.busybox.applets, "stat", "readlink", "find", "wc"],
  files: {
    "etc/motd": "old\n",
    "opt/tree/one": "1\n",
    "opt/tree/deep/two": "2\n",
    "usr/lib/real": "real\n",
  },
};

describeWithDocker("docker engine: patches and scripts", ({ host }) => {
  const harness = useDocker(host, [FURNISHED, IMAGES.busybox, IMAGES.noShell]);
  const { docker, engine, installationId, start, run, output, container } = harness;

  const patched = (patches: Patch[], spec: SpecChanges = {}) =>
    allocate({ image: FURNISHED.name, ...spec }, { patches });
  const text = (path: string, content: string, rest: object = {}): Patch => ({
    kind: "text",
    path,
    content,
    mode: null,
    replace: false,
    ...rest,
  });
  const bytes = (content: Buffer, path: string): Patch => {
    const base64 = content.toString("base64");
    return { kind: "file", path, content: base64, mode: 0o600, replace: false };
  };

  describe("patches", () => {
    it("of every kind are on the disk before the workload runs, in their order", async () => {
      const patches: Patch[] = [
        text("/made/for/it", "text ä\n"),
        bytes(Buffer.from([0, 255, 10]), "/made/bytes"),
        { kind: "symlink", target: "../usr/lib/real", link: "/made/link", replace: false },
        { kind: "mkdir", path: "/made/dir", mode: 0o2770 },
        { kind: "mkdir", path: "/opt/tree", mode: null },
        { kind: "append", path: "/etc/motd", content: "new\n" },
        { kind: "remove", path: "/opt/tree/deep" },
        { kind: "remove", path: "/usr/lib/real" },
        { kind: "remove", path: "/not/there" },
        text("/usr/lib/real", "again\n"),
      ];
      const script = `cat /made/for/it /made/link /etc/motd; wc -c </made/bytes
        stat -c '%a %u %g %n' /made /made/for/it /made/bytes /made/dir /opt/tree /etc/motd; find /opt`;
      const sandbox = patched(patches, { runtime: { cmd: ["sh", "-c", script] } });
      await start(sandbox);
      await expect.poll(() => output(sandbox)).toContain("/opt/tree/one");
      expect((await output(sandbox)).split("\n")).toEqual([
        "text ä",
        "again",
        "old",
        "new",
        "3",
        "755 0 0 /made",
        "644 0 0 /made/for/it",
        "600 0 0 /made/bytes",
        "2770 0 0 /made/dir",
        "755 0 0 /opt/tree",
        "644 0 0 /etc/motd",
        "/opt",
        "/opt/tree",
        "/opt/tree/one",
      ]);
    });

    it("replace files, links and whole trees where they may, and empty what is made again", async () => {
      const sandbox = patched([
        text("/etc/motd", "mine\n", { replace: true }),
        { kind: "remove", path: "/opt/tree" },
        { kind: "mkdir", path: "/opt/tree", mode: 0o700 },
        { kind: "symlink", target: "/etc/motd", link: "/usr/lib", replace: true },
        text("/bin/ls", "no program\n", { replace: true }),
      ]);
      await start(sandbox);
      expect(await run(sandbox, "cat", "/etc/motd", "/usr/lib", "/bin/ls")).toBe(
        "mine\nmine\nno program",
      );
      expect(await run(sandbox, "find", "/opt")).toBe("/opt\n/opt/tree");
    });

    it.each<[string, Patch]>([
      ['"/etc/motd" is there already; it needs replace: true', text("/etc/motd", "hidden words")],
      [
        '"/opt/tree" is there already; it needs replace: true',
        { kind: "symlink", target: "/", link: "/opt/tree", replace: false },
      ],
      ['"/etc/motd" is no directory', text("/etc/motd/x", "hidden words")],
      [
        'there is no "/none" to append to',
        { kind: "append", path: "/none", content: "hidden words" },
      ],
      ['"/proc/x" is not on the sandbox\'s disk', text("/proc/x", "hidden words")],
      [
        '"/etc/resolv.conf" is written by Docker at each start',
        text("/etc/resolv.conf", "hidden words", { replace: true }),
      ],
      ['"/t/x" would be hidden by the mount at /t', text("/t/x", "hidden words")],
    ])("that cannot be applied fail the start by their place: %s", async (message, patch) => {
      const options = { nodev: false, noexec: false, nosuid: false, readonly: false };
      const mounts = [{ type: "tmpfs" as const, guest: "/t", options, sizeMib: 1 }];
      const sandbox = patched([text("/fine", "x"), patch], { mounts });
      const failed = start(sandbox);
      await expect(failed).rejects.toThrow(`patches[1]: ${message}`);
      await expect(failed).rejects.not.toThrow("hidden words");
      await expect(start(sandbox)).rejects.toThrow(`patches[1]: ${message}`);
    });

    it("of /etc/hosts last over restarts", async () => {
      const content = "# ours\n10.1.2.3 one.test two.test # both\n\nfd00::1 six.test\n";
      const sandbox = patched([{ kind: "append", path: "/etc/hosts", content }]);
      await start(sandbox);
      const hosts = /10\.1\.2\.3\s+one\.test\n10\.1\.2\.3\s+two\.test\nfd00::1\s+six\.test/;
      expect(await run(sandbox, "cat", "/etc/hosts")).toMatch(hosts);
      await engine.stop(sandbox, 0);
      await start(nextStart(sandbox));
      expect(await run(nextStart(sandbox), "cat", "/etc/hosts")).toMatch(hosts);
      const wrong = patched([{ kind: "append", path: "/etc/hosts", content: "what?" }]);
      await expect(start(wrong)).rejects.toThrow("patches[0]: /etc/hosts takes lines");
    });

    it("are for the first start only", async () => {
      const sandbox = patched([{ kind: "append", path: "/etc/motd", content: "once\n" }]);
      await start(sandbox);
      await engine.stop(sandbox, 0);
      await start(nextStart(sandbox));
      expect(await run(nextStart(sandbox), "cat", "/etc/motd")).toBe("old\nonce");
    });

    it("reach an image without a shell, removals too", async () => {
      const sandbox = patched([text("/hello", "x"), { kind: "remove", path: "/etc/passwd" }], {
        image: IMAGES.noShell.name,
      });
      await start(sandbox);
      const machine = container(sandbox);
      await expect(machine.infoArchive({ path: "/hello" })).resolves.toBeDefined();
      await expect(machine.infoArchive({ path: "/etc/passwd" })).rejects.toThrow();
    });

    it("may be as large as a request", async () => {
      const size = 20 * 1024 * 1024;
      const sandbox = patched([bytes(Buffer.alloc(size, "large"), "/large")]);
      await start(sandbox);
      expect(await run(sandbox, "stat", "-c", "%s", "/large")).toBe(String(size));
    });
  });

  describe("a container that was never started", () => {
    const once: Patch[] = [{ kind: "append", path: "/etc/motd", content: "once\n" }];
    const anew = () => createDockerEngine({ installationId, docker: { host }, log: SILENT });

    async function leaveBehind(sandbox: Allocation): Promise<string> {
      await start(sandbox);
      const { Image, Config, HostConfig, Id } = await container(sandbox).inspect();
      await engine.remove(sandbox.sandboxId);
      const name = `sbx-${sandbox.sandboxId}-${sandbox.generation}`;
      const left = await docker.createContainer({ ...Config, Image, HostConfig, name });
      expect(left.id).not.toBe(Id);
      return left.id;
    }

    it("is made anew: nobody knows how far its patches came", async () => {
      const sandbox = patched(once);
      const left = await leaveBehind(sandbox);
      await anew().ensureRunning(sandbox, UNHURRIED);
      expect(await run(sandbox, "cat", "/etc/motd")).toBe("old\nonce");
      await expect(docker.getContainer(left).inspect()).rejects.toThrow("No such container");
    });

    it("is made anew for a later start too", async () => {
      const sandbox = patched(once);
      const left = await leaveBehind(sandbox);
      await anew().ensureRunning(nextStart(sandbox), UNHURRIED);
      expect(await run(nextStart(sandbox), "cat", "/etc/motd")).toBe("old\nonce");
      await expect(docker.getContainer(left).inspect()).rejects.toThrow("No such container");
    });

    it("but one that has been up keeps its disk, whoever was told of it", async () => {
      const sandbox = patched(once);
      await start(sandbox);
      await run(sandbox, "touch", "/kept");
      await engine.stop(sandbox, 0);
      await anew().ensureRunning(nextStart(sandbox), UNHURRIED);
      expect(await run(nextStart(sandbox), "ls", "/kept")).toBe("/kept");
    });
  });

  describe("scripts", () => {
    const scripts = { hello: "#!/bin/sh\necho hello $1\n", plain: "echo plain\n" };

    it("are programs on PATH, for the workload and for whatever else is run", async () => {
      const runtime = { scripts, cmd: ["sh", "-c", "hello workload; plain; echo $PATH"] };
      const sandbox = patched([], { runtime });
      await start(sandbox);
      await expect
        .poll(() => output(sandbox))
        .toBe(
          "hello workload\nplain\n/.msb/scripts:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
      expect(await run(sandbox, "hello", "exec")).toBe("hello exec");
      expect(await run(sandbox, "stat", "-c", "%a %u %g", "/.msb/scripts/hello")).toBe("755 0 0");
    });

    it("may be the workload itself, without a first line too, beside the sandbox's own PATH", async () => {
      for (const [cmd, writes] of [
        ["hello", "hello"],
        ["plain", "plain"],
      ] as const) {
        const env = [{ key: "PATH", value: "/bin" }];
        const sandbox = patched([], { env, runtime: { scripts, cmd: [cmd] } });
        await start(sandbox);
        await expect.poll(() => output(sandbox)).toBe(writes);
        expect(await run(sandbox, "sh", "-c", "echo $PATH")).toBe("/.msb/scripts:/bin");
      }
    });

    it("that need what is not there fail the start", async () => {
      const runtime = { scripts: { go: "#!/bin/zsh\n" }, cmd: ["go"] };
      const failed = start(patched([], { runtime }));
      await expect(failed).rejects.toThrow(
        'command "go" needs /bin/zsh, which is not in the image',
      );
    });
  });
});
