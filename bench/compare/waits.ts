import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "../../runtime/postgres/connect.ts";
import { median, percentile } from "../support/measure.ts";
import { TITLES } from "./contenders.ts";
import { type Ground, openGround, pidOf, ready } from "./ground.ts";
import { makeOne } from "./make.ts";
import { rssMib } from "./memory.ts";
import { A_SECOND, destroyAll } from "./wakes.ts";

const GOAL_MS = 50;
const AT_ONCE = 200;
const REST_MS = 3_000;
/** As many have a 99th percentile; more would only take longer. */
const WOKEN = 1_000;
/** Woken before the measured ones, as every row is warmed up for 15 s; they are held beside the others. */
const WARM_UP = 15 * A_SECOND;
// One sandbox takes the whole host, so that every other one of that size waits for room.
const SETTINGS = { CPU_OVERCOMMIT: "1", WAITS_MAX: "20000" };
const BODY = {
  image: { type: "oci", reference: "alpine" },
  resources: { vcpus: 1_024, memory_mib: 64 },
};

/** How long it takes from the answer of a destroy to the answer of the start that waits for that sandbox, while many wait. */
export async function waits(count: number, say: (line: string) => void): Promise<string[]> {
  const lines: string[] = [];
  for (const shape of ["one", "separate"] as const) {
    say(`${count} waits, ${TITLES[shape]}`);
    lines.push(await lineOf(shape, count));
  }
  return [
    `**${count} waits held, ${Math.min(count, WOKEN)} of them woken by ${A_SECOND} destroys a second: milliseconds until the waiter is answered**`,
    "",
    "| | from the destroy's answer: p50 | p99 | goal | from when it was sent: p50 | p99 | the destroy itself: p50 | p99 | gateway, MiB |",
    "|---|---|---|---|---|---|---|---|---|",
    ...lines,
  ];
}

async function lineOf(shape: "one" | "separate", count: number): Promise<string> {
  const ground = await openGround(SETTINGS);
  try {
    const { port, gateway } = await start(ground, shape);
    const full = await makeOne(port, ground.apiKey, {
      query: "?start=true&wait_for=running",
      body: BODY,
    });
    if (full.status !== "running") throw new Error("the first start does not run");
    const woken = new Map<string, number>();
    const sockets = await hold(ground, port, count + WARM_UP, woken);
    await sleep(REST_MS);
    if (woken.size > 0) throw new Error(`${woken.size} waits ended before their time`);
    const names = [...sockets.keys()];
    await destroyAll(port, ground.apiKey, names.splice(0, WARM_UP));
    const mib = await rssMib(gateway);
    const wakes = await destroyAll(port, ground.apiKey, names.filter(every(count / WOKEN)));
    await sleep(REST_MS);
    for (const socket of sockets.values()) socket.destroy();
    const times = (from: "sent" | "answered") =>
      wakes.map((wake) => (woken.get(wake.name) ?? Number.POSITIVE_INFINITY) - wake[from]);
    const behind = times("answered");
    const p99 = percentile(behind, 0.99);
    const own = wakes.map(({ sent, answered }) => answered - sent);
    const goal = `${GOAL_MS}, ${p99 <= GOAL_MS ? "met" : "**missed**"}`;
    const shown = [...pair(behind), goal, ...pair(times("sent")), ...pair(own), mib.toFixed(0)];
    return `| ${[TITLES[shape], ...shown].join(" | ")} |`;
  } finally {
    await ground.close();
  }
}

/** @returns the gateway's port and process */
async function start(ground: Ground, shape: "one" | "separate") {
  if (shape === "one") {
    const one = await ground.alone("one", "main.ts");
    one.child.start();
    await ready(one.isReady);
    return { port: one.port, gateway: pidOf(one.child) };
  }
  const roles = await ground.roles();
  for (const child of roles.all) child.start();
  await ready(roles.isReady);
  return { port: Number(new URL(roles.url).port), gateway: pidOf(roles.gateway) };
}

/** Starts that wait, each on a connection of its own. @returns connections by the sandbox's name */
async function hold(ground: Ground, port: number, count: number, woken: Map<string, number>) {
  const sockets = new Map<string, Socket>();
  while (sockets.size < count) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - sockets.size) }, (_, at) => {
      return `wait-${sockets.size + at}`;
    });
    for (const name of batch) {
      const socket = connect(port, "127.0.0.1");
      socket.once("data", () => woken.set(name, performance.now()));
      socket.write(startOf(name, ground.apiKey));
      sockets.set(name, socket);
    }
    await Promise.all(batch.map((name) => once(sockets.get(name) as Socket, "connect")));
    // The one that runs is no waiter.
    while ((await countStarting(ground.databaseUrl)) < sockets.size) {
      if (woken.size > 0) throw new Error("a start was answered at once");
      await sleep(50);
    }
  }
  return sockets;
}

function startOf(name: string, apiKey: string): string {
  const body = JSON.stringify({ ...BODY, name });
  return [
    "POST /v1/sandboxes?start=true&wait_for=running&wait_timeout=300 HTTP/1.1",
    "host: 127.0.0.1",
    `authorization: Bearer ${apiKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "",
    body,
  ].join("\r\n");
}

function countStarting(databaseUrl: string): Promise<number> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM sandbox.sandboxes WHERE status = 'starting'",
    );
    return rows[0]?.n ?? 0;
  });
}

/** Takes one of so many, all over the list. */
function every(step: number): (name: string, at: number) => boolean {
  return step <= 1
    ? () => true
    : (_name, at) => Math.floor((at + 1) / step) > Math.floor(at / step);
}

function pair(values: number[]): string[] {
  return [median(values).toFixed(1), percentile(values, 0.99).toFixed(1)];
}
