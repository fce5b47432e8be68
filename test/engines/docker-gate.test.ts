import { readFile } from "node:fs/promises";
import { expect, it, vi } from "vitest";
import { createDockerEngine } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import { writeTar } from "../../services/orchestrator/engines/docker/write-tar.ts";
import { type Allocation, EngineFailure } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { GREETING, PUBLIC } from "../support/outside.ts";
import { nextStart, UNHURRIED } from "./allocations.ts";
import { SILENT, useDocker } from "./docker-harness.ts";
import { networked, useNetwork } from "./docker-network-harness.ts";

/** Not of this world, and not to be reached: what an attacker wants. */
const FORBIDDEN = "10.99.0.10";

/** Puts a program that only tries to get out in every place that a start may look for one. */
const REWRITE = `
mkdir /evil /.msb && cp /bin/sh /evil/busybox && cd /evil
cat >loop <<'EOF'
#!/evil/busybox sh
while :; do
  /evil/busybox nc -w 1 ${FORBIDDEN} 80 </dev/null >>/loot 2>/dev/null
  echo tried >>/tries
done
EOF
chmod 755 loop
for name in sh gate init docker-init; do cp loop "/$name"; cp loop "$name"; done
/evil/busybox rm -rf /bin /sbin /usr
/evil/busybox ln -s /evil /bin
/evil/busybox ln -s /proc/self/cwd /sbin
/evil/busybox ln -s /evil /usr
/evil/busybox ln -s /evil /.sandgate
`;

describeWithDocker("docker engine: the gate before a network", ({ host, network }) => {
  if (network === null) {
    it.skip("needs a Docker daemon of the tests' own, in a network namespace of its own", () => {});
    return;
  }
  const harness = useDocker(host, [IMAGES.busybox, IMAGES.noShell]);
  const { docker, engine, installationId, start, run, container, output } = harness;
  const { greets } = useNetwork(harness, network);
  const anew = (networkPolicy?: "unenforced") =>
    createDockerEngine({
      installationId,
      docker: { host, ...(networkPolicy && { networkPolicy }) },
      log: SILENT,
    });
  const isHeld = async (sandbox: Allocation) => {
    const { Pid } = (await container(sandbox).inspect()).State;
    return (await readFile(`/proc/${Pid}/cmdline`, "latin1")).startsWith("/dev/.sandgate/gate");
  };
  const hold = async (sandbox: Allocation) => {
    await container(sandbox).start();
    await expect.poll(() => isHeld(sandbox)).toBe(true);
  };

  it("claims what it keeps, once it has tried", async () => {
    const tried = anew();
    expect(tried.features()).not.toContain("network");
    expect(await tried.enforcement()).toMatchObject({ enforced: true });
    expect(tried.features()).toEqual(
      expect.arrayContaining(["network", "network.policy", "network.max_connections"]),
    );
    expect(tried.features()).not.toContain("network.policy.domains");
    const label = [`dev.sandgate.gate=${installationId}`];
    expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
  });

  it("claims nothing, and starts nothing, where it cannot set rules", async () => {
    const sandbox = networked();
    const tried = anew();
    vi.stubEnv("PATH", "/nonexistent");
    try {
      expect(await tried.enforcement()).toEqual({
        enforced: false,
        why: "there is no program nsenter",
      });
      expect(tried.features().filter((feature) => feature.startsWith("network"))).toEqual([]);
      await expect(tried.ensureRunning(sandbox, UNHURRIED)).rejects.toThrow(EngineFailure);
      // It went away since the last look.
      await expect(start(sandbox)).rejects.toThrow(EngineFailure);
      expect((await container(sandbox).inspect()).State.Running).toBe(false);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(await anew().enforcement()).toMatchObject({ enforced: true });
    const afar = createDockerEngine({
      installationId,
      docker: { host: "tcp://127.0.0.1:1" },
      log: SILENT,
    });
    expect(await afar.enforcement()).toMatchObject({ enforced: false });
  });

  it("lets nothing be mounted in its place", async () => {
    const options = { nodev: false, noexec: false, nosuid: false, readonly: false };
    for (const guest of ["/dev/.sandgate", "/dev/x/../.sandgate/gate"]) {
      const plain = networked();
      const mounts = [{ type: "tmpfs" as const, guest, options, sizeMib: 1 }];
      const sandbox = { ...plain, spec: { ...plain.spec, mounts } };
      await expect(start(sandbox)).rejects.toThrow(/taken/);
    }
  });

  it("does not let the sandbox change its rules, see the link, or forge packets", async () => {
    const sandbox = networked();
    await start(sandbox);
    expect(await run(sandbox, "arping", "-c", "1", "172.17.0.1")).toMatch(/not permitted/i);
    expect(await run(sandbox, "ip", "link", "set", "eth0", "down")).toMatch(/not permitted/i);
    expect(await run(sandbox, "ip", "route", "add", "10.0.0.0/8", "dev", "eth0")).toMatch(
      /not permitted/i,
    );
    const write = (path: string) => run(sandbox, "sh", "-c", `echo 1 >${path}`);
    expect(await write("/proc/sys/net/ipv4/ip_forward")).toMatch(/read-only/i);
    expect(await write("/dev/.sandgate/gate")).toMatch(/read-only/i);
    await run(sandbox, "unshare", "-Urn", "sh", "-c", `arping -c 1 172.17.0.1; sleep 1`);
    expect(await run(sandbox, "mount", "-o", "remount,rw", "/dev/.sandgate")).toMatch(
      /denied|permitted/i,
    );
    expect(await run(sandbox, "umount", "/dev/.sandgate")).toMatch(/not permitted|denied/i);
    expect(await greets(sandbox, FORBIDDEN)).toBe(false);
    expect(await greets(sandbox, PUBLIC)).toBe(true);
  });

  it("holds a sandbox that has rewritten its whole disk until its rules stand again", async () => {
    const sandbox = networked();
    await start(sandbox);
    await run(sandbox, "sh", "-c", REWRITE);
    await engine.stop(sandbox, 0);
    const again = nextStart(sandbox);
    await start(again);
    const tries = () => run(again, "/evil/busybox", "cat", "/tries");
    await expect.poll(tries, { timeout: 20_000 }).toContain("tried");
    expect(await run(again, "/evil/busybox", "sh", "-c", "cat /loot")).toBe("");
    expect(await run(again, "/evil/busybox", "nc", "-w", "3", PUBLIC, "80")).toBe(GREETING);
  });

  it("leaves no trace of itself in what it lets through", async () => {
    const plain = networked();
    const cmd = ["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"];
    const runtime = { ...plain.spec.runtime, cmd, user: "app", workdir: "/bin" };
    const sandbox = { ...plain, spec: { ...plain.spec, runtime } };
    await start(sandbox);
    await expect.poll(() => output(sandbox)).toMatch(/SigBlk:\s0{16}\nSigIgn:\s0{16}$/);
    expect(await engine.stop(sandbox, 60_000)).toMatchObject({ state: "ended", exitCode: 143 });
  });

  it("holds an image without a shell too", async () => {
    const plain = networked();
    const sandbox = { ...plain, spec: { ...plain.spec, image: IMAGES.noShell.name } };
    await start(sandbox);
    await expect
      .poll(async () => (await container(sandbox).top()).Processes.flat().join(" "))
      .toContain("/bin/sleep 1000");
    expect(await engine.stop(sandbox, 60_000)).toMatchObject({ state: "ended" });
  });

  it("takes over a machine that was started and never let through", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    await hold(sandbox);
    expect(await output(sandbox)).toBe("");
    expect(await anew().ensureRunning(sandbox, UNHURRIED)).toMatchObject({ state: "running" });
    await expect.poll(() => isHeld(sandbox)).toBe(false);
    expect(await greets(sandbox, FORBIDDEN)).toBe(false);
    expect(await greets(sandbox, PUBLIC)).toBe(true);
    const { Pid } = (await container(sandbox).inspect()).State;
    await anew().ensureRunning(sandbox, UNHURRIED);
    expect((await container(sandbox).inspect()).State.Pid).toBe(Pid);
  });

  it("leaves a machine that has passed alone, also while policies cannot be kept", async () => {
    const sandbox = networked();
    await start(sandbox);
    vi.stubEnv("PATH", "/nonexistent");
    try {
      expect(await anew().ensureRunning(sandbox, UNHURRIED)).toMatchObject({ state: "running" });
    } finally {
      vi.unstubAllEnvs();
    }
    expect((await container(sandbox).inspect()).State.Running).toBe(true);
  });

  it("ends a machine at its gate at once when it is stopped", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    await hold(sandbox);
    expect(await engine.stop(sandbox, 60_000)).toMatchObject({ state: "ended", exitCode: 143 });
  });

  it("fills its volume anew when somebody has emptied it", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    const emptier = await docker.createContainer({
      Image: IMAGES.busybox.name,
      Cmd: ["sh", "-c", "rm /v/*"],
      HostConfig: { Binds: [`sandgate-${installationId}-gate:/v`], AutoRemove: true },
    });
    const gone = emptier.wait({ condition: "removed" });
    await emptier.start();
    await gone;
    expect(await start(nextStart(sandbox))).toMatchObject({ state: "running" });
    expect(await greets(nextStart(sandbox), FORBIDDEN)).toBe(false);
  });

  it("does not take the gate from an image", async () => {
    const evil = {
      name: `sandgate-test/evil-${installationId}`,
      applets: IMAGES.busybox.applets,
      files: { "dev/.sandgate/gate": "#!/bin/sh\nexec sleep 1000\n" },
    };
    await loadImage(docker, evil);
    const sandbox = networked();
    const poisoned = { ...sandbox, spec: { ...sandbox.spec, image: evil.name } };
    await start(poisoned);
    expect(await greets(poisoned, FORBIDDEN)).toBe(false);
    expect(await greets(poisoned, PUBLIC)).toBe(true);
  });

  it("is not covered by a volume of the image's", async () => {
    const covers = [
      { links: { "a/b/c": "/dev/.sandgate" }, Volumes: { "/a/b/c": {} } },
      { links: { "a/b": "/dev" }, Volumes: { "/a/b/.sandgate": {} } },
      { links: { "dev/.sandgate": "/proc/self/cwd" }, Volumes: { "/dev": {} } },
      { links: {}, Volumes: { "/dev/.sandgate/gate": {} } },
    ];
    for (const [i, { links, Volumes }] of covers.entries()) {
      const name = `sandgate-test/covering-${i}-${installationId}`;
      const files = { "dev/.sandgate/bin/gate": "#!/bin/sh\nexec sleep 1000\n" };
      const { applets } = IMAGES.busybox;
      await loadImage(docker, {
        name,
        applets,
        links,
        files: "dev/.sandgate" in links ? {} : files,
        config: { Volumes },
      });
      const plain = networked();
      const sandbox = { ...plain, spec: { ...plain.spec, image: name } };
      await expect(start(sandbox), name).rejects.toThrow(/the image's volume at/);
      const { State } = await container(sandbox).inspect();
      expect(new Date(State.StartedAt).getTime(), name).toBeLessThan(0);
    }
  });

  it("is not covered by a volume that the sandbox has led elsewhere", async () => {
    const image = {
      name: `sandgate-test/volume-${installationId}`,
      applets: IMAGES.busybox.applets,
      links: { "bin/mv": "sh" },
      config: { Volumes: { "/a/b/c": {} } },
    };
    await loadImage(docker, image);
    const plain = networked();
    const sandbox = { ...plain, spec: { ...plain.spec, image: image.name } };
    await start(sandbox);
    const again = nextStart(sandbox);
    await run(sandbox, "sh", "-c", "echo data >/a/b/c/own");
    await engine.stop(sandbox, 0);
    expect(await start(again)).toMatchObject({ state: "running" });
    expect(await run(again, "cat", "/a/b/c/own")).toBe("data");
    const script = `cp /bin/sh /a/b/c/init
      printf '#!/bin/sh\nexec /dev/.sandgate/init -- sleep 1000\n' >/a/b/c/gate
      chmod 755 /a/b/c/*; mv /a/b /a/x; mkdir /a/b; ln -s /dev/.sandgate /a/b/c`;
    expect(await run(again, "sh", "-c", script)).toBe("");
    const machine = docker.getContainer((await container(again).inspect()).Id);
    await engine.stop(again, 0);
    const third = nextStart(again);
    await expect(start(third)).rejects.toThrow(/lies behind a link, \/a\/b\/c/);
    // By hand it is started all the same; it is ended as soon as it is seen.
    await machine.start();
    await expect(start(third)).rejects.toThrow(/did not come to its gate/);
    expect((await machine.inspect()).State.Running).toBe(false);
  });

  it("ends a machine that was let through without rules where they are demanded", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    const again = nextStart(sandbox);
    await anew("unenforced").ensureRunning(again, UNHURRIED);
    expect(await greets(again, FORBIDDEN)).toBe(true);
    await expect(start(again)).rejects.toThrow(/did not come to its gate/);
    expect((await container(again).inspect()).State.Running).toBe(false);
  });

  it("is not overwritten by what is written to a sandbox's disk from outside", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    const machine = container(sandbox);
    const volume = async () => (await machine.inspect()).Mounts.map(({ RW }) => RW);
    expect(await volume()).toEqual([false]);
    for (const name of ["dev/.sandgate/gate", "dev/.sandgate/other"]) {
      const content = [Buffer.from("#!/bin/sh\nexec sleep 1000\n")];
      const archive = writeTar([{ header: { name, type: "file", mode: 0o755 }, content }]);
      await expect(machine.putArchive(archive, { path: "/" }), name).rejects.toThrow(/read-only/);
    }
    expect(await start(nextStart(sandbox))).toMatchObject({ state: "running" });
    expect(await greets(nextStart(sandbox), FORBIDDEN)).toBe(false);
    expect(await greets(nextStart(sandbox), PUBLIC)).toBe(true);
  });

  it("kills what it cannot set rules for", async () => {
    const bad = { kind: "cidr", value: "10.0.0.0/8; flush ruleset" } as const;
    const rule = { direction: "egress", destination: bad, action: "allow" } as const;
    const sandbox = networked({ rules: [{ ...rule, ports: [], protocols: [] }] });
    await expect(start(sandbox)).rejects.toThrow(/no IP address or prefix/);
    expect((await container(sandbox).inspect()).State.Running).toBe(false);
  });

  it("does not start a machine that was made while policies were not kept", async () => {
    const sandbox = networked();
    await anew("unenforced").ensureRunning(sandbox, UNHURRIED);
    expect(await greets(sandbox, FORBIDDEN)).toBe(true);
    await expect(start(sandbox)).rejects.toThrow(/not enforced/);
    await expect(start(nextStart(sandbox))).rejects.toThrow(/not enforced/);
  });

  it("lets a machine with a gate through where the operator accepts it", async () => {
    const sandbox = networked();
    await start(sandbox);
    await engine.stop(sandbox, 0);
    await anew("unenforced").ensureRunning(nextStart(sandbox), UNHURRIED);
    expect(await greets(nextStart(sandbox), FORBIDDEN)).toBe(true);
  });
});
