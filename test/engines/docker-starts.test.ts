import { describe, expect, it } from "vitest";
import { DockerError } from "../../services/orchestrator/engines/docker/call.ts";
import { DiskMemory } from "../../services/orchestrator/engines/docker/disk-memory.ts";
import type { Disk } from "../../services/orchestrator/engines/docker/find-program.ts";
import { startFault } from "../../services/orchestrator/engines/docker/start-faults.ts";
import { EngineFailure, EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";

describe("what is remembered of an image's disk", () => {
  it("is looked at once an image, what is not there too, and a failure is not kept", async () => {
    const looks: string[] = [];
    let away = false;
    const disk: Disk = {
      async stat(path) {
        looks.push(path);
        if (away) throw new Error("the daemon is away");
        return path === "/missing" ? undefined : { path, kind: "file", executable: true };
      },
      async interpreter(path) {
        looks.push(`interpreter of ${path}`);
        return "/bin/sh";
      },
    };
    const memory = new DiskMemory();
    for (const image of ["one", "one", "two"]) {
      expect(await memory.of(image, disk).stat("/a")).toMatchObject({ path: "/a" });
      expect(await memory.of(image, disk).stat("/missing")).toBeUndefined();
      expect(await memory.of(image, disk).interpreter("/a")).toBe("/bin/sh");
    }
    const each = ["/a", "/missing", "interpreter of /a"];
    expect(looks).toEqual([...each, ...each]);
    away = true;
    await expect(memory.of("three", disk).stat("/a")).rejects.toThrow("the daemon is away");
    away = false;
    expect(await memory.of("three", disk).stat("/a")).toMatchObject({ path: "/a" });
  });
});

describe("what the daemon says of a start", () => {
  it.each([
    ["unable to find user me: no matching entries in passwd file", 'user "me" is not in the image'],
    [
      "OCI runtime create failed: runc create failed: unable to start container process: error during container init: error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: unknown",
      "rlimit 'nofile' is more than this host allows",
    ],
    [
      'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error mounting "tmpfs" to rootfs at "/a/b": mkdir /var/lib/docker/overlay2/0a1b/merged/a/b: not a directory: unknown: Are you trying to mount a directory onto a file?',
      'the container could not be started: error mounting "tmpfs" to rootfs at "/a/b": mkdir /a/b: not a directory',
    ],
    [
      "container_linux.go:380: starting container process caused: rootfs_linux.go:76: something new: unknown",
      "the container could not be started: rootfs_linux.go:76: something new",
    ],
  ])("%s", (message, sentence) => {
    const fault = startFault(new DockerError(500, message));
    expect(fault).toBeInstanceOf(EngineFailure);
    expect(fault.message).toBe(sentence);
  });

  it("is worth another try where the daemon does not know that the container is up", () => {
    expect(startFault(new DockerError(500, "id already in use"))).toBeInstanceOf(EngineUnavailable);
  });

  it("is worth another try where the daemon itself stands on nothing", () => {
    const message = "connection error: dial unix /run/containerd/containerd.sock: no such file";
    expect(startFault(new DockerError(500, message))).toBeInstanceOf(EngineUnavailable);
  });
});
