import { METRICS } from "../../runtime/metrics/catalogue.ts";
import type { Metrics } from "../../runtime/metrics/metrics.ts";
import { inSpan } from "../../runtime/tracing/spans.ts";
import {
  type Engine,
  EngineFailure,
  EngineTrouble,
  EngineUnavailable,
  InsufficientCapacity,
} from "./engines/engine.ts";

/** An engine whose calls are counted and measured, by verb and by what came of them; in a trace each is a span. */
export function watchedEngine(engine: Engine, metrics: Metrics): Engine {
  const calls = metrics.counter(METRICS.engineCalls);
  const duration = metrics.histogram(METRICS.engineDuration);
  const call = <T>(verb: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    const attributes = { "sandgate.engine": engine.name };
    return inSpan(`engine ${verb}`, { kind: "client", attributes }, () =>
      count(verb, work, signal),
    );
  };
  const count = async <T>(verb: string, work: () => Promise<T>, signal?: AbortSignal) => {
    const began = performance.now();
    let outcome = "ok";
    try {
      return await work();
    } catch (error) {
      outcome = signal?.aborted ? "aborted" : outcomeOf(error);
      throw error;
    } finally {
      calls.inc({ verb, outcome });
      duration.observe({ verb }, (performance.now() - began) / 1_000);
    }
  };
  return {
    name: engine.name,
    volumes: engine.volumes,
    features: () => engine.features(),
    capacity: () => call("capacity", () => engine.capacity()),
    ensureRunning: (allocation, signal) =>
      call("ensure_running", () => engine.ensureRunning(allocation, signal), signal),
    stop: (run, graceMs) => call("stop", () => engine.stop(run, graceMs)),
    remove: (sandboxId) => call("remove", () => engine.remove(sandboxId)),
    list: () => call("list", () => engine.list()),
    // It goes on for as long as somebody listens.
    watch: (signal) => engine.watch(signal),
    logs: (run, after, signal) => call("logs", () => engine.logs(run, after, signal), signal),
    close: () => engine.close(),
  };
}

function outcomeOf(error: unknown): string {
  if (error instanceof EngineFailure) return "failed";
  if (error instanceof InsufficientCapacity) return "no_room";
  if (error instanceof EngineTrouble) return "trouble";
  if (error instanceof EngineUnavailable) return "unavailable";
  return "error";
}
