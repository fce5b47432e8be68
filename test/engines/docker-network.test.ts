import { describe, expect, it } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { GREETING, NOT_PUBLIC, PRIVATE_V6, PUBLIC, PUBLIC_V6 } from "../support/outside.ts";
import { useDocker } from "./docker-harness.ts";
import { ANY, cidr, group, networked, rule, useNetwork } from "./docker-network-harness.ts";

describeWithDocker("docker engine: network policy, with real packets", ({ host, network }) => {
  if (network === null) {
    it.skip("needs a Docker daemon of the tests' own, in a network namespace of its own", () => {});
    return;
  }
  const docker = useDocker(host, [IMAGES.busybox]);
  const net = useNetwork(docker, network);
  const { start, run } = docker;
  const { greets, datagram, hold, pings, endpoint, listen } = net;

  describe("the default policy", () => {
    const sandbox = networked();
    it("lets the sandbox reach the public internet, by every protocol", async () => {
      await start(sandbox);
      expect(await greets(sandbox, PUBLIC)).toBe(true);
      expect(await greets(sandbox, PUBLIC_V6)).toBe(true);
      expect(await datagram(sandbox, PUBLIC, 9999)).toBe(GREETING);
      expect(await datagram(sandbox, PUBLIC_V6, 9999)).toBe(GREETING);
      expect(await pings(sandbox, PUBLIC)).toBe(true);
    });

    it("lets it ask for names, and no other port of the resolver", async () => {
      expect(await run(sandbox, "nslookup", "-type=a", "probe.example.")).toContain(PUBLIC);
      expect(await datagram(sandbox, "127.0.0.11", 54)).toMatch(/UNREACH|ACCES/);
    });

    it.each(NOT_PUBLIC)("keeps it from %s, which is there", async (address) => {
      expect(await net.outside.outThere("busybox", "nc", "-w", "3", address, "80")).toBe(GREETING);
      expect(await greets(sandbox, address)).toBe(false);
      expect(await datagram(sandbox, address, 9999)).toMatch(/UNREACH|ACCES/);
    });

    it("keeps it from private addresses of IPv6", async () => {
      expect(await greets(sandbox, PRIVATE_V6)).toBe(false);
      expect(await datagram(sandbox, PRIVATE_V6, 9999)).toMatch(/UNREACH|ACCES/);
    });

    it("keeps it from every address of the host, the public ones too", async () => {
      const { hostAddress, hostPort, onHost } = net.outside;
      const { Gateway, IPv6Gateway } = await endpoint(sandbox);
      for (const address of [Gateway, IPv6Gateway, hostAddress, "172.17.0.1"]) {
        const asked = await onHost("busybox", "nc", "-w", "3", address, String(hostPort));
        expect(asked, address).toBe(GREETING);
        expect(await greets(sandbox, address, hostPort), address).toBe(false);
      }
    });

    it("keeps it from other sandboxes, which take everybody in", async () => {
      const other = networked({ defaultIngress: "allow", defaultEgress: "allow" });
      await start(other);
      await listen(other, 8080);
      await listen(sandbox, 8080);
      for (const [from, to] of [
        [sandbox, other],
        [other, sandbox],
      ] as const) {
        const { IPAddress, GlobalIPv6Address } = await endpoint(to);
        expect(await greets(from, IPAddress, 8080)).toBe(false);
        expect(await greets(from, GlobalIPv6Address, 8080)).toBe(false);
      }
    });

    it("leaves it its own loopback, and its own addresses", async () => {
      const { IPAddress, GlobalIPv6Address } = await endpoint(sandbox);
      for (const address of ["127.0.0.1", "::1", IPAddress, GlobalIPv6Address])
        expect(await greets(sandbox, address, 8080), address).toBe(true);
    });

    it("lets everybody in", async () => {
      const { IPAddress, GlobalIPv6Address } = await endpoint(sandbox);
      const { onHost, outThere } = net.outside;
      expect(await onHost("busybox", "nc", "-w", "3", IPAddress, "8080")).toBe(GREETING);
      expect(await outThere("busybox", "nc", "-w", "3", GlobalIPv6Address, "8080")).toBe(GREETING);
    });
  });

  it("denies all that no rule allows, at once and not after a while, and names too", async () => {
    const sandbox = networked({});
    await start(sandbox);
    expect(await run(sandbox, "nc", "-w", "20", PUBLIC, "80")).toMatch(
      /unreachable|No route|denied/i,
    );
    expect(await run(sandbox, "nslookup", "probe.example.")).not.toContain(PUBLIC);
    await listen(sandbox, 8080);
    const { IPAddress } = await endpoint(sandbox);
    expect(await net.outside.onHost("busybox", "nc", "-w", "2", IPAddress, "8080")).toBe("");
  });

  it("takes the first rule that matches: prefixes, ports, protocols, both families", async () => {
    const sandbox = networked({
      rules: [
        rule(cidr("10.99.0.0/24"), { action: "deny", ports: [{ start: 8000, end: 9000 }] }),
        rule(cidr("10.99.0.0/16"), { protocols: ["tcp"] }),
        rule(cidr("fd99::/16"), { ports: [{ start: 80, end: 80 }] }),
        rule(ANY, { protocols: ["icmpv4"], ports: [] }),
        rule(group("metadata")),
        rule(ANY, { action: "deny" }),
        rule(group("public")),
      ],
    });
    await start(sandbox);
    expect(await greets(sandbox, "10.99.0.10", 80)).toBe(true);
    expect(await greets(sandbox, "10.99.0.10", 8443)).toBe(false);
    expect(await datagram(sandbox, "10.99.0.10", 9999)).toMatch(/UNREACH|ACCES/);
    expect(await greets(sandbox, PRIVATE_V6, 80)).toBe(true);
    expect(await greets(sandbox, PRIVATE_V6, 8443)).toBe(false);
    expect(await pings(sandbox, PUBLIC)).toBe(true);
    expect(await greets(sandbox, "169.254.169.254")).toBe(true);
    expect(await greets(sandbox, "169.254.9.9")).toBe(false);
    expect(await greets(sandbox, PUBLIC)).toBe(false);
  });

  it("tells groups apart where one lies within another", async () => {
    const sandbox = networked({ rules: [rule(group("link_local")), rule(group("host"))] });
    await start(sandbox);
    expect(await greets(sandbox, "169.254.9.9")).toBe(true);
    expect(await greets(sandbox, "169.254.169.254")).toBe(false);
    const { hostPort, hostAddress } = net.outside;
    const { Gateway } = await endpoint(sandbox);
    expect(await greets(sandbox, Gateway, hostPort)).toBe(true);
    expect(await greets(sandbox, hostAddress, hostPort)).toBe(true);
    expect(await greets(sandbox, "10.99.0.10")).toBe(false);
    expect(await run(sandbox, "nslookup", "-type=a", "probe.example.")).toContain(PUBLIC);
  });

  it("judges who comes by whence and to which port, whatever goes out", async () => {
    const sandbox = networked({
      defaultEgress: "allow",
      rules: [
        rule(group("host"), { direction: "ingress", ports: [{ start: 8080, end: 8081 }] }),
        rule(cidr("2001:db8::/16"), { direction: "any", ports: [{ start: 8081, end: 8081 }] }),
      ],
    });
    await start(sandbox);
    for (const port of [8080, 8081, 8082]) await listen(sandbox, port);
    const { IPAddress, GlobalIPv6Address } = await endpoint(sandbox);
    const { onHost, outThere } = net.outside;
    const ask = (port: number) => ["busybox", "nc", "-w", "2", IPAddress, String(port)];
    const askV6 = (port: number) => ["busybox", "nc", "-w", "2", GlobalIPv6Address, String(port)];
    expect(await onHost(...ask(8080))).toBe(GREETING);
    expect(await onHost(...ask(8082))).toBe("");
    expect(await outThere(...askV6(8081))).toBe(GREETING);
    expect(await outThere(...askV6(8080))).toBe("");
    expect(await greets(sandbox, "10.99.0.10")).toBe(true);
  });

  it("keeps to the most connections at once, in both directions together", async () => {
    const sandbox = networked({ defaultEgress: "allow", defaultIngress: "allow" }, 2);
    await start(sandbox);
    await listen(sandbox, 8080);
    const { IPAddress } = await endpoint(sandbox);
    const ask = () => net.outside.onHost("busybox", "nc", "-w", "2", IPAddress, "8080");
    expect(await ask()).toBe(GREETING);
    const first = await hold(sandbox, PUBLIC);
    const second = await hold(sandbox, PUBLIC_V6);
    expect(await hold(sandbox, PUBLIC)).toBeUndefined();
    expect(await ask()).toBe("");
    expect(await greets(sandbox, "127.0.0.1", 8080)).toBe(true);
    await first?.();
    expect(await ask()).toBe(GREETING);
    await second?.();
  });
});
