import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { json } from "node:stream/consumers";
import {
  type Capacity,
  type Engine,
  EngineFailure,
  EngineUnavailable,
  type Instance,
  InsufficientCapacity,
} from "../../../services/orchestrator/engines/engine.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import { type EngineCalls, type Failure, reviveInstance, WATCH } from "./engine-protocol.ts";

const TIMEOUT_MS = 10_000;
const ERRORS = { EngineFailure, EngineUnavailable, InsufficientCapacity };

/** The engine of an engine host, seen from another process. */
export function createRemoteEngine(
  socketPath: string,
): Engine & { setAvailable(available: boolean): Promise<void> } {
  const closed = new AbortController();
  const call = <Name extends keyof EngineCalls>(
    name: Name,
    args: EngineCalls[Name],
    signal?: AbortSignal,
  ) => post(socketPath, name, args, signal);
  const instance = (value: unknown) => reviveInstance(value as Instance);
  return {
    name: "simulated",
    features: () => FEATURES,
    capacity: async () => (await call("capacity", [])) as Capacity,
    ensureRunning: async (allocation, signal) =>
      instance(await call("ensureRunning", [allocation], signal)),
    stop: async (run, graceMs) => {
      const stopped = await call("stop", [run, graceMs]);
      return stopped === null ? undefined : instance(stopped);
    },
    remove: async (sandboxId) => {
      await call("remove", [sandboxId]);
    },
    list: async () => ((await call("list", [])) as unknown[]).map(instance),
    watch: (signal) => watch(socketPath, AbortSignal.any([signal, closed.signal])),
    // Its machines write nothing, and nobody reads.
    logs: async () => nothing(),
    setAvailable: async (available) => {
      await call("setAvailable", [available]);
    },
    close: async () => closed.abort(),
  };
}

async function* nothing(): AsyncGenerator<never> {}

async function post(
  socketPath: string,
  name: string,
  args: readonly unknown[],
  signal?: AbortSignal,
): Promise<unknown> {
  signal?.throwIfAborted();
  const late = AbortSignal.timeout(TIMEOUT_MS);
  const end = signal ? AbortSignal.any([signal, late]) : late;
  const { statusCode, body } = await send(socketPath, `/${name}`, args, end).catch(
    (error: Error) => {
      signal?.throwIfAborted();
      throw new EngineUnavailable(`the engine host does not answer: ${error.message}`);
    },
  );
  if (statusCode === 200) return body;
  const failure = body as Failure;
  const kind = ERRORS[failure.name as keyof typeof ERRORS] ?? EngineUnavailable;
  throw new kind(failure.message);
}

async function send(
  socketPath: string,
  path: string,
  args: readonly unknown[],
  signal: AbortSignal,
): Promise<{ statusCode: number | undefined; body: unknown }> {
  const response = await open(socketPath, path, signal, JSON.stringify(args));
  return { statusCode: response.statusCode, body: await json(response) };
}

function open(
  socketPath: string,
  path: string,
  signal: AbortSignal,
  body: string,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { socketPath, path, method: "POST", signal, agent: false };
    request(options, resolve).on("error", reject).end(body);
  });
}

async function* watch(socketPath: string, signal: AbortSignal): AsyncGenerator<string> {
  try {
    const response = await open(socketPath, WATCH, signal, "[]");
    yield* createInterface({ input: response });
  } catch (error) {
    if (signal.aborted) return;
    throw new EngineUnavailable(`the engine host does not answer: ${String(error)}`);
  }
}
