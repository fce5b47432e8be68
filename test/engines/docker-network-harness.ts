import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import type { Allocation, EngineSpec } from "../../services/orchestrator/engines/engine.ts";
import { GREETING, type Outside, startOutside } from "../support/outside.ts";
import { allocate } from "./allocations.ts";
import type { DockerHarness } from "./docker-harness.ts";

const run = promisify(execFile);

/** Sends a datagram and prints what comes back, or why nothing can. */
const UDP = `
const [address, port] = process.argv.slice(1);
const socket = require("node:dgram").createSocket(address.includes(":") ? "udp6" : "udp4");
const say = (what) => { console.log(what); process.exit(); };
socket.on("error", (error) => say(error.code));
socket.on("message", (message) => say(message.toString()));
socket.connect(Number(port), address, () => socket.send("${GREETING}"));
setTimeout(() => say("nothing"), 5000);
`;

/** Connects, prints that or why not, and holds the connection until its standard input ends. */
const HOLD = `
const [address, port] = process.argv.slice(1);
const socket = require("node:net").connect(Number(port), address);
socket.on("connect", () => console.log("connected"));
socket.on("error", (error) => { console.log(error.code); process.exit(); });
process.stdin.resume().on("end", () => process.exit());
`;

export type Policy = NonNullable<EngineSpec["network"]["policy"]>;
export type Rule = Policy["rules"][number];

/** A rule that leaves open what is not said. */
export function rule(destination: Rule["destination"], rest: Partial<Rule> = {}): Rule {
  return { direction: "egress", destination, action: "allow", ports: [], protocols: [], ...rest };
}

export const group = (value: Extract<Rule["destination"], { kind: "group" }>["value"]) =>
  ({ kind: "group", value }) as const;
export const cidr = (value: string) => ({ kind: "cidr", value }) as const;
export const ANY = { kind: "any" } as const;

/** A sandbox with a network; all is denied but what the rules allow. */
export function networked(policy: Partial<Policy> | null = null, maxConnections?: number) {
  const whole: Policy = { defaultEgress: "deny", defaultIngress: "deny", rules: [] };
  return allocate({
    network: {
      enabled: true,
      policy: policy && { ...whole, ...policy },
      maxConnections: maxConnections ?? null,
    },
  });
}

/** What a test does with a sandbox's network. */
export interface NetworkHarness {
  /** Filled in before the first test. */
  outside: Outside;
  /** Asks from inside the sandbox. @returns whether a server greeted */
  greets(sandbox: Allocation, address: string, port?: number): Promise<boolean>;
  /** A datagram from the sandbox's network. @returns the answer, or an error's code */
  datagram(sandbox: Allocation, address: string, port: number): Promise<string>;
  /** Opens a connection from the sandbox's network. @returns how to close it; undefined: it was refused */
  hold(sandbox: Allocation, address: string): Promise<(() => Promise<void>) | undefined>;
  /** @returns whether an echo comes back */
  pings(sandbox: Allocation, address: string): Promise<boolean>;
  /** In Docker's words: address, gateway and so on. */
  endpoint(sandbox: Allocation): Promise<Endpoint>;
  /** Waits for connections inside the sandbox, and greets whoever comes. */
  listen(sandbox: Allocation, port: number): Promise<void>;
}

interface Endpoint {
  IPAddress: string;
  Gateway: string;
  GlobalIPv6Address: string;
  IPv6Gateway: string;
}

/** Call it in a suite, after useDocker. @param network path of the namespace that the daemon is in */
export function useNetwork(docker: DockerHarness, network: string): NetworkHarness {
  const name = `sandgate-${docker.installationId}`;
  const prefix = `fd00:${docker.installationId.slice(-8, -4)}:${docker.installationId.slice(-4)}::`;
  // Filled in below; the tests run after that.
  const harness = { ...toolsOf(docker, name), outside: undefined as unknown as Outside };

  beforeAll(async () => {
    const made = await docker.docker.createNetwork({
      Name: name,
      EnableIPv6: true,
      IPAM: { Driver: "default", Config: [{ Subnet: `${prefix}/64` }] },
      Options: { "com.docker.network.bridge.enable_icc": "false" },
      Labels: { "dev.sandgate.installation": docker.installationId },
    });
    const bridge = `br-${made.id.slice(0, 12)}`;
    harness.outside = await startOutside(network, bridge, `${prefix}/64`);
  });
  afterAll(() => harness.outside?.stop());
  return harness;
}

function toolsOf(docker: DockerHarness, name: string): Omit<NetworkHarness, "outside"> {
  const inspect = (sandbox: Allocation) => docker.container(sandbox).inspect();
  const within = async (sandbox: Allocation, ...command: string[]) => {
    const { Pid } = (await inspect(sandbox)).State;
    return (await run("nsenter", ["-t", String(Pid), "--net", ...command])).stdout.trim();
  };
  return {
    async greets(sandbox, address, port = 80) {
      const script = `nc -w 3 ${address} ${port} </dev/null`;
      return (await docker.run(sandbox, "sh", "-c", script)) === GREETING;
    },
    datagram: (sandbox, address, port) =>
      within(sandbox, process.execPath, "-e", UDP, address, String(port)),
    async hold(sandbox, address) {
      const { Pid } = (await inspect(sandbox)).State;
      const command = ["-t", String(Pid), "--net", process.execPath, "-e", HOLD, address, "80"];
      const child = spawn("nsenter", command, { stdio: ["pipe", "pipe", "inherit"] });
      const ended = once(child, "exit");
      const [said] = await once(child.stdout, "data");
      if (String(said).trim() !== "connected") return undefined;
      return async () => {
        child.stdin.end();
        await ended;
      };
    },
    async pings(sandbox, address) {
      const said = await within(sandbox, "sh", "-c", `busybox ping -c 1 -W 3 ${address} || true`);
      return said.includes("1 packets received");
    },
    async endpoint(sandbox) {
      const found = (await inspect(sandbox)).NetworkSettings.Networks[name];
      if (!found) throw new Error("the sandbox is in no network");
      return found as Endpoint;
    },
    async listen(sandbox, port) {
      const script = `nc -ll -p ${port} -e echo ${GREETING} & while ! grep -qi :${port.toString(16)} /proc/net/tcp6 /proc/net/tcp; do :; done`;
      await docker.run(sandbox, "sh", "-c", script);
    },
  };
}
