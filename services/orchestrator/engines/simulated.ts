import { EventEmitter, on } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Allocation,
  type Capacity,
  type Engine,
  EngineFailure,
  EngineUnavailable,
  type Instance,
  InsufficientCapacity,
  type LogChunk,
  type LoggedRun,
  type LogPosition,
  type LogSource,
  type RunKey,
} from "./engine.ts";
import { SimulatedOutput } from "./simulated-output.ts";
import type { VolumeStore } from "./volume-store.ts";

/** What a start comes to, where it is not a machine that runs until it is stopped. */
export type SimulatedFault =
  /** Throws EngineFailure. */
  | { kind: "failure"; message: string }
  /** Comes up, and ends by itself so long after. */
  | { kind: "ends"; afterMs: number; exitCode: number; outOfMemory?: boolean };

/** May be changed at any time, for what begins after that. */
export interface SimulatedSettings {
  /** Milliseconds. */
  delays: { start: number; stop: number };
  /** Asked at each start; of an image that does not exist, say. */
  faultOf: (allocation: Allocation) => SimulatedFault | undefined;
  /** What its host has, as it tells. */
  capacity: Capacity;
  /** What the machines that are up may take together, whatever the host has. */
  room: Capacity;
}

export interface SimulatedOptions extends Partial<SimulatedSettings> {
  /** `simulated` unless it is told otherwise. */
  name?: string;
  /** What the engine claims to honour. */
  features: readonly string[];
  /** Machines that are there from the beginning; their size is not known, so they take no room. */
  initial?: readonly Instance[];
  volumes?: VolumeStore;
}

/** With the handles by which a test moves it. */
export interface SimulatedEngine extends Engine {
  readonly settings: SimulatedSettings;
  /** While false every call throws EngineUnavailable, and watches have ended; machines go on. */
  setAvailable(available: boolean): void;
  /** Ends a machine as if by itself; false: it is not running. */
  endMachine(sandboxId: string, ending: Ending): boolean;
  /** Ends the workload of a machine that stays up; false: it is not running. */
  endWorkload(sandboxId: string): boolean;
  /** Has a machine that runs write something; false: it is not running. */
  write(sandboxId: string, source: LogSource, text: string): boolean;
  /** Readers of output that wait for more at this moment. */
  readonly logReaders: number;
}

/** How a machine ends by itself. */
export type Ending = { exitCode: number; outOfMemory?: boolean };

interface Machine {
  instance: Instance;
  room: Capacity;
  output: SimulatedOutput;
  /** An override with nothing in it, and no image that could have a command of its own. */
  isEmpty: boolean;
  starting: boolean;
  /** Ends it by itself. */
  timer?: NodeJS.Timeout;
}

const NONE: Capacity = { vcpus: 0, memoryMib: 0 };
const PLENTY: Capacity = { vcpus: 1024, memoryMib: 4 * 1024 * 1024 };
const ENDLESS: Capacity = {
  vcpus: Number.POSITIVE_INFINITY,
  memoryMib: Number.POSITIVE_INFINITY,
};
const TERMINATED = 128 + 15;
const KILLED = 128 + 9;
/** Of a machine that has to make way for a later start. */
const GRACE_MS = 5_000;

/** See createSimulatedEngine. */
class Simulation implements Engine {
  readonly name: string;
  readonly volumes: VolumeStore | undefined;
  readonly settings: SimulatedSettings;
  readonly #features: readonly string[];
  readonly #machines = new Map<string, Machine>();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #closed = new AbortController();
  #available = true;

  constructor(options: SimulatedOptions) {
    const { name = "simulated", features, initial = [], volumes } = options;
    const { delays, faultOf, capacity, room } = options;
    this.name = name;
    this.volumes = volumes;
    this.#features = features;
    this.settings = {
      delays: delays ?? { start: 0, stop: 0 },
      faultOf: faultOf ?? (() => undefined),
      capacity: capacity ?? PLENTY,
      room: room ?? ENDLESS,
    };
    for (const instance of initial) {
      const output = new SimulatedOutput();
      if (instance.state === "ended") output.end();
      this.#machines.set(instance.sandboxId, {
        instance,
        room: NONE,
        output,
        isEmpty: false,
        starting: false,
      });
    }
  }

  features(): readonly string[] {
    return this.#features;
  }

  async capacity(): Promise<Capacity> {
    this.#answer();
    return this.settings.capacity;
  }

  async ensureRunning(allocation: Allocation, signal: AbortSignal): Promise<Instance> {
    this.#answer();
    signal.throwIfAborted();
    const { sandboxId, generation } = allocation;
    const found = this.#machines.get(sandboxId)?.instance;
    if (found && found.generation > generation)
      throw new EngineFailure(`start ${generation} came after start ${found.generation}`);
    if (found?.generation === generation && found.state !== "created") return { ...found };
    const fault = this.settings.faultOf(allocation);
    if (fault?.kind === "failure") throw new EngineFailure(fault.message);
    if (found?.state === "running") await this.stop(found, GRACE_MS);
    const machine = this.#place(allocation);
    await this.#bringUp(machine, signal);
    if (fault) machine.timer = setTimeout(() => this.#end(machine, fault), fault.afterMs).unref();
    return { ...machine.instance };
  }

  async stop({ sandboxId, generation }: RunKey, graceMs: number): Promise<Instance | undefined> {
    this.#answer();
    const machine = this.#machines.get(sandboxId);
    if (machine?.instance.state === "running" && machine.instance.generation <= generation) {
      const late = this.settings.delays.stop > graceMs;
      await this.#wait(late ? graceMs : this.settings.delays.stop);
      this.#end(machine, { exitCode: late ? KILLED : TERMINATED });
    }
    return machine && { ...machine.instance };
  }

  async remove(sandboxId: string): Promise<void> {
    this.#answer();
    const machine = this.#machines.get(sandboxId);
    clearTimeout(machine?.timer);
    machine?.output.end();
    if (this.#machines.delete(sandboxId)) this.#changes.emit("change", sandboxId);
  }

  async list(): Promise<Instance[]> {
    this.#answer();
    return [...this.#machines.values()].map(({ instance }) => ({ ...instance }));
  }

  async *watch(signal: AbortSignal): AsyncGenerator<string> {
    this.#answer();
    const end = AbortSignal.any([signal, this.#closed.signal]);
    if (end.aborted) return;
    try {
      const changes = on(this.#changes, "change", { signal: end, close: ["gone"] });
      // `on` yields the listener's arguments; ours has one.
      for await (const [sandboxId] of changes) yield sandboxId as string;
    } catch (error) {
      if (!end.aborted) throw error;
      return;
    }
    this.#answer();
  }

  async logs(
    { sandboxId, generation }: LoggedRun,
    after: LogPosition,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogChunk>> {
    this.#answer();
    const machine = this.#machines.get(sandboxId);
    const { instance } = machine ?? {};
    const isRead = instance?.generation === generation && instance.state !== "created";
    const output = machine && isRead ? machine.output : SimulatedOutput.NONE;
    return output.read(after, AbortSignal.any([signal, this.#closed.signal]));
  }

  async close(): Promise<void> {
    this.#closed.abort();
    for (const { timer } of this.#machines.values()) clearTimeout(timer);
  }

  setAvailable(available: boolean): void {
    this.#available = available;
    if (available) return;
    this.#changes.emit("gone");
    for (const { output } of this.#machines.values()) output.breakOff();
  }

  write(sandboxId: string, source: LogSource, text: string): boolean {
    const machine = this.#machines.get(sandboxId);
    if (machine?.instance.state !== "running") return false;
    machine.output.write(source, text);
    return true;
  }

  get logReaders(): number {
    const machines = [...this.#machines.values()];
    return machines.reduce((sum, { output }) => sum + output.readers, 0);
  }

  endMachine(sandboxId: string, ending: Ending): boolean {
    const machine = this.#machines.get(sandboxId);
    if (machine?.instance.state !== "running") return false;
    this.#end(machine, ending);
    return true;
  }

  endWorkload(sandboxId: string): boolean {
    const machine = this.#machines.get(sandboxId);
    if (machine?.instance.state !== "running") return false;
    machine.instance = { ...machine.instance, workloadEndedAt: new Date() };
    this.#changes.emit("change", sandboxId);
    return true;
  }

  #answer(): void {
    if (!this.#available) throw new EngineUnavailable("the simulated engine is set to be away");
  }

  // Its room is taken from here on, so starts at the same time cannot take more than there is.
  #place({ sandboxId, generation, spec }: Allocation): Machine {
    const { vcpus, memoryMib } = spec.resources;
    const used = this.#used(sandboxId);
    const { room } = this.settings;
    if (used.vcpus + vcpus > room.vcpus || used.memoryMib + memoryMib > room.memoryMib)
      throw new InsufficientCapacity("the simulated engine is full");
    const nothing = {
      startedAt: null,
      endedAt: null,
      exitCode: null,
      outOfMemory: false,
      workloadEndedAt: null,
    };
    const machine: Machine = {
      instance: { sandboxId, generation, state: "created", ...nothing },
      room: { vcpus, memoryMib },
      isEmpty: spec.runtime.entrypoint === null && spec.runtime.cmd?.length === 0,
      output: new SimulatedOutput(),
      starting: true,
    };
    this.#machines.get(sandboxId)?.output.end();
    this.#machines.set(sandboxId, machine);
    return machine;
  }

  #used(except: string): Capacity {
    const used = { ...NONE };
    for (const { instance, room, starting } of this.#machines.values()) {
      if (instance.sandboxId === except) continue;
      if (!starting && instance.state !== "running") continue;
      used.vcpus += room.vcpus;
      used.memoryMib += room.memoryMib;
    }
    return used;
  }

  async #bringUp(machine: Machine, signal: AbortSignal): Promise<void> {
    const { sandboxId } = machine.instance;
    try {
      await this.#wait(this.settings.delays.start, signal);
    } finally {
      machine.starting = false;
    }
    this.#answer();
    if (this.#machines.get(sandboxId) !== machine)
      throw new EngineUnavailable("the machine was removed while it was started");
    const startedAt = new Date();
    const workloadEndedAt = machine.isEmpty ? startedAt : null;
    machine.instance = { ...machine.instance, state: "running", startedAt, workloadEndedAt };
    this.#changes.emit("change", sandboxId);
  }

  #end(machine: Machine, { exitCode, outOfMemory = false }: Ending): void {
    if (machine.instance.state !== "running") return;
    clearTimeout(machine.timer);
    const endedAt = new Date();
    machine.instance = { ...machine.instance, state: "ended", endedAt, exitCode, outOfMemory };
    machine.output.end();
    this.#changes.emit("change", machine.instance.sandboxId);
  }

  async #wait(ms: number, signal?: AbortSignal): Promise<void> {
    const end = AbortSignal.any([this.#closed.signal, ...(signal ? [signal] : [])]);
    if (ms > 0) await sleep(ms, undefined, { ref: false, signal: end }).catch(() => undefined);
    end.throwIfAborted();
  }
}

/** An engine that only keeps books: nothing runs. Its timers keep no process alive. */
export function createSimulatedEngine(options: SimulatedOptions): SimulatedEngine {
  return new Simulation(options);
}
