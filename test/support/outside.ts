import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { nameservers } from "../../services/orchestrator/engines/docker/policy/facts.ts";

const run = promisify(execFile);

/** The world beyond a test daemon's host, with a server that greets on each of its addresses. */
export interface Outside {
  /** Of the daemon's host, towards the outside: a public one. */
  hostAddress: string;
  /** On which a server greets on every address of the host. */
  hostPort: number;
  /** Runs a program on the daemon's host. @returns its standard output, trimmed, also where it fails */
  onHost(...command: string[]): Promise<string>;
  /** Runs a program outside. @returns its standard output, trimmed, also where it fails */
  outThere(...command: string[]): Promise<string>;
  stop(): Promise<void>;
}

export const PUBLIC = "203.0.113.10";
export const PUBLIC_V6 = "2001:db8:9::10";
export const PRIVATE_V6 = "fd99::10";
export const GREETING = "hello";
/** What is not public, of every kind. */
export const NOT_PUBLIC = [
  "10.99.0.10",
  "192.168.99.10",
  "100.64.9.9",
  "169.254.169.254",
  "169.254.9.9",
  "198.18.0.9",
  "168.63.129.16",
];

/** Greets by TCP, echoes by UDP, answers every question for a name with PUBLIC; ends with its standard input. */
const SERVER = `
const [tcp, udp, addresses] = JSON.parse(process.argv[1]);
const servers = [...tcp.map((port) => require("node:net").createServer((socket) => {
  socket.on("error", () => undefined);
  socket.on("end", () => socket.end());
  socket.write("${GREETING}\\n");
}).listen(port)), ...addresses.flatMap((address) => udp.map((port) => {
  const server = require("node:dgram").createSocket(address.includes(":") ? "udp6" : "udp4");
  server.on("message", (message, from) => server.send(port === 53 ? answer(message) : message, from.port, from.address));
  return server.bind(port, address);
}))];
function answer(question) {
  let end = 12;
  while (question[end] !== 0) end += question[end] + 1;
  end += 5;
  const isA = question.readUInt16BE(end - 4) === 1;
  const head = Buffer.from([question[0], question[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
  const record = isA ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ${PUBLIC.replaceAll(".", ", ")}] : [];
  return Buffer.concat([head, question.subarray(12, end), Buffer.from(record)]);
}
Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve)))).then(() => console.log("ready"));
process.stdin.resume().on("end", () => process.exit());
`;

/**
 * @param network path of the namespace that the daemon is in
 * @param bridge what its packets come from; no other's way is changed
 * @param subnetV6 of the bridge
 */
export async function startOutside(
  network: string,
  bridge: string,
  subnetV6: string,
): Promise<Outside> {
  const inHost = [`--net=${network}`];
  const outside = holdNamespace();
  const hostPort = 20_000 + (outside.pid % 10_000);
  const host = await serve(inHost, [hostPort], [], []);
  const table = String(10_000 + outside.pid);
  const there = ["-t", String(outside.pid), "--net"];
  const link = `out${outside.pid}`.slice(0, 15);
  const at = (outside.pid % 62) * 4;
  const [hostAddress, beyond] = [`198.51.100.${at + 1}`, `198.51.100.${at + 2}`];
  const v6 = `2001:db8:1:${(outside.pid % 0xffff).toString(16)}`;
  const resolvers = nameservers(await readFile("/etc/resolv.conf", "utf8"));
  const addresses = [PUBLIC, ...NOT_PUBLIC, ...resolvers.filter((one) => !one.startsWith("127."))];
  await run("nsenter", [
    ...inHost,
    "sh",
    "-ec",
    HOST_LINK,
    "sh",
    link,
    String(outside.pid),
    hostAddress,
    v6,
  ]);
  await run("nsenter", [...there, "sh", "-ec", THERE, "sh", beyond, v6, subnetV6, ...addresses]);
  await run("nsenter", [...inHost, "sh", "-ec", ROUTES, "sh", link, bridge, beyond, v6, table]);
  const all = [...addresses, PUBLIC_V6, PRIVATE_V6];
  const greeter = await serve(there, [80, 8443, 53], [53, 9999], all);
  return {
    hostAddress,
    hostPort,
    onHost: (...command) => output(inHost, command),
    outThere: (...command) => output(there, command),
    stop: async () => {
      await output(inHost, ["ip", "rule", "del", "iif", bridge, "lookup", table]);
      await output(inHost, ["ip", "-6", "rule", "del", "iif", bridge, "lookup", table]);
      await Promise.all([greeter.stop(), host.stop(), outside.stop()]);
    },
  };
}

const HOST_LINK = `
ip link add "$1" type veth peer name out netns "$2"
ip addr add "$3/30" dev "$1"
ip -6 addr add "$4::1/64" dev "$1" nodad
ip link set "$1" up
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
echo 0 >"/proc/sys/net/ipv4/conf/$1/rp_filter"
`;

const THERE = `
ip link set lo up
ip addr add "$1/30" dev out
ip -6 addr add "$2::2/64" dev out nodad
ip link set out up
ip -6 route add "$3" via "$2::1"
ip -6 addr add ${PUBLIC_V6}/128 dev lo nodad
ip -6 addr add ${PRIVATE_V6}/128 dev lo nodad
shift 3
for address; do ip addr add "$address" dev lo; done
`;

// Only for what comes from that bridge: the daemon itself, and other tests, have no way outside.
const ROUTES = `
ip route add default via "$3" dev "$1" table "$5"
ip rule add iif "$2" lookup "$5"
ip -6 route add default via "$4::2" dev "$1" table "$5"
ip -6 rule add iif "$2" lookup "$5"
`;

/** A network namespace that is there until it is told to go. */
function holdNamespace() {
  const child = spawn("unshare", ["--net", "cat"], { stdio: ["pipe", "ignore", "inherit"] });
  return endable(child);
}

async function serve(namespace: string[], tcp: number[], udp: number[], addresses: string[]) {
  const settings = JSON.stringify([tcp, udp, addresses]);
  const command = [...namespace, process.execPath, "-e", SERVER, settings];
  const child = spawn("nsenter", command, { stdio: ["pipe", "pipe", "inherit"] });
  const isReady = once(child.stdout, "data").then(() => true);
  if (!(await Promise.race([isReady, once(child, "exit").then(() => false)])))
    throw new Error(`a server of ${settings} did not start`);
  return endable(child);
}

function endable(child: ChildProcess) {
  const ended = once(child, "exit");
  const stop = async () => {
    child.stdin?.end();
    await ended;
  };
  return { pid: child.pid ?? 0, stop };
}

async function output(namespace: string[], program: string[]): Promise<string> {
  try {
    // Some programs stay for as long as there may be something to read.
    const command = ["sh", "-c", 'exec "$@" </dev/null', "sh", ...program];
    return (await run("nsenter", [...namespace, ...command])).stdout.trim();
  } catch (error) {
    if (error instanceof Error && "stdout" in error) return String(error.stdout).trim();
    throw error;
  }
}
