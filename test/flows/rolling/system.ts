import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { generateApiKey } from "../../../runtime/api-key.ts";
import { type Balancer, startBalancer } from "../../support/balancer.ts";
import { Child } from "../../support/child.ts";
import { createTestDatabase } from "../../support/database.ts";
import { freePort } from "../../support/ports.ts";
import { startSimulatedHost } from "../chaos/simulated-host.ts";

const MAIN = join(import.meta.dirname, "../../../main.ts");

const SERVICES = ["sandbox", "organization", "billing", "orchestrator"] as const;
type Role = (typeof SERVICES)[number] | "gateway";

/** One process of a role. */
interface Member {
  child: Child;
  port: number;
  isReady(): Promise<boolean>;
}

/** Two of each role, and a balancer before each two. */
export interface RollingSystem {
  url: string;
  apiKey: string;
  /** All processes, in the order in which they are restarted. */
  members: Member[];
  /** Ends a process well, starts it again, and returns its exit code when its balancer has it back. */
  restart(member: Member): Promise<number | null>;
  /** What each process has written. */
  logs(): string;
  close(): Promise<void>;
}

export async function startRollingSystem(): Promise<RollingSystem> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-rolling-"));
  const database = await createTestDatabase();
  const host = await startSimulatedHost(dir, { seed: "" });
  const apiKey = generateApiKey();
  const env: Record<string, string> = {
    DATABASE_URL: database.url,
    DATA_DIR: dir,
    BOOTSTRAP_API_KEY: apiKey,
    SECRETS_KEY: randomBytes(32).toString("hex"),
    ENGINE: "simulated",
    LOG_LEVEL: "warn",
    RATE_LIMIT_PER_SEC: "0",
    DRAIN_DELAY_SECS: "2",
    DRAIN_TIMEOUT_SECS: "20",
  };
  const balancers = new Map<Role, Balancer>();
  const membersOf = async (role: Role, program: readonly string[]) => {
    const members = [await member(role, 1), await member(role, 2)];
    const balancer = await startBalancer(members);
    balancers.set(role, balancer);
    // Of the gateways it is read by tests alone.
    if (role !== "gateway") env[`${role.toUpperCase()}_URL`] = balancer.url;
    return members;

    async function member(name: Role, number: number): Promise<Member> {
      const port = await freePort();
      const own = name === "gateway" ? { PORT: String(port) } : { RPC_PORT: String(port) };
      const child = new Child({
        name: `${name}-${number}`,
        command: [process.execPath, ...program],
        // Filled in before the first of them is started.
        get env() {
          return { ...env, ...own };
        },
        log: join(dir, `${name}-${number}.log`),
      });
      return { child, port, isReady: name === "gateway" ? readyz(port) : serving(port) };
    }
  };
  const members: Member[] = [];
  for (const role of SERVICES) {
    const own = role === "orchestrator" ? host.program : undefined;
    members.push(...(await membersOf(role, own ?? [MAIN, role])));
  }
  members.push(...(await membersOf("gateway", [MAIN, "gateway"])));
  // Nobody waits for ever: the test has its time limit.
  const allReady = async () => {
    while ([...balancers.values()].some((one) => one.ready() < 2)) await sleep(100);
  };
  for (const { child } of members) child.start();
  await allReady();
  return {
    url: balancers.get("gateway")?.url ?? "",
    apiKey,
    members,
    restart: async ({ child }) => {
      const code = await child.stop();
      child.start();
      await allReady();
      return code;
    },
    logs: () => members.map(({ child }) => `${child.name}:\n${child.output()}`).join("\n"),
    close: async () => {
      await Promise.all(members.map(({ child }) => child.kill()));
      for (const balancer of balancers.values()) balancer.close();
      await host.close();
      await database.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function readyz(port: number) {
  return () => answers(`http://127.0.0.1:${port}/readyz`, {}, "ready");
}

/** As grpc.health.v1 says it, by JSON. */
function serving(port: number) {
  const url = `http://127.0.0.1:${port}/grpc.health.v1.Health/Check`;
  const headers = { "content-type": "application/json" };
  return () => answers(url, { method: "POST", headers, body: "{}" }, "SERVING");
}

async function answers(url: string, init: RequestInit, status: string): Promise<boolean> {
  try {
    const headers = { ...init.headers, connection: "close" };
    const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(5_000) });
    const body = (await response.json()) as { status?: string };
    return response.ok && body.status === status;
  } catch {
    return false;
  }
}
