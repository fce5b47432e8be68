// A simulated engine in a process of its own, which outlives orchestrators as a Docker daemon does.
// engine-host.ts <socket> <ledger> <seed>; without a seed it has no faults
import { appendFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import type { Allocation } from "../../../services/orchestrator/engines/engine.ts";
import {
  createSimulatedEngine,
  type SimulatedFault,
} from "../../../services/orchestrator/engines/simulated.ts";
import { type Random, randomFrom } from "../../support/random.ts";
import { type EngineCalls, type LedgerEntry, WATCH } from "./engine-protocol.ts";

const [socket = "", ledger = "", seed = ""] = process.argv.slice(2);
const life = `${process.pid}-${Date.now()}`;
const random = randomFrom(`${seed}/${life}`);
const engine = createSimulatedEngine({ features: [], faultOf: () => faultOf(random) });
const written = new Set<string>();

function faultOf(choose: Random): SimulatedFault | undefined {
  if (seed === "") return undefined;
  if (choose.chance(0.05)) return { kind: "failure", message: "no such image" };
  if (!choose.chance(0.1)) return undefined;
  return { kind: "ends", afterMs: choose.between(0, 4_000), exitCode: choose.between(0, 1) };
}

async function ensureRunning(allocation: Allocation, signal: AbortSignal) {
  engine.settings.delays = { start: random.between(0, 400), stop: random.between(0, 300) };
  const instance = await engine.ensureRunning(allocation, signal);
  const { sandboxId, generation } = instance;
  const startedAt = instance.startedAt?.getTime() ?? 0;
  const key = `${sandboxId} ${generation} ${startedAt}`;
  // The machine of an earlier call is answered as it is: that was no start.
  if (!written.has(key)) {
    const entry: LedgerEntry = { life, sandboxId, generation, startedAt };
    appendFileSync(ledger, `${JSON.stringify(entry)}\n`);
    written.add(key);
  }
  return instance;
}

const calls: {
  [Name in keyof EngineCalls]: (args: EngineCalls[Name], signal: AbortSignal) => unknown;
} = {
  capacity: () => engine.capacity(),
  ensureRunning: ([allocation], signal) => ensureRunning(allocation, signal),
  stop: ([run, graceMs]) => engine.stop(run, graceMs),
  remove: ([sandboxId]) => engine.remove(sandboxId),
  list: () => engine.list(),
  setAvailable: ([available]) => engine.setAvailable(available),
};

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  // Half of the starts go on when their caller is gone, as a daemon's may.
  const heeds = random.chance(0.5);
  response.once("close", () => heeds && gone.abort());
  if (request.url === WATCH) return watch(response);
  const name = request.url?.slice(1) ?? "";
  if (!Object.hasOwn(calls, name)) throw new Error(`no call ${name}`);
  const call = calls[name as keyof EngineCalls] as (args: unknown, signal: AbortSignal) => unknown;
  const result = await call(await json(request), gone.signal);
  response.end(JSON.stringify(result ?? null));
}

async function watch(response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  response.flushHeaders();
  for await (const sandboxId of engine.watch(gone.signal)) response.write(`${sandboxId}\n`);
  response.end();
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: Error) => {
    if (!response.headersSent) response.statusCode = 500;
    response.end(JSON.stringify({ name: error.name, message: error.message }));
  });
});
rmSync(socket, { force: true });
server.listen(socket);
