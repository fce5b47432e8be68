import type { VolumeStore } from "./volume-store.ts";

/**
 * What an engine is: the one seam between Sandgate and whatever runs machines. Every method is
 * idempotent and safe to call again after a crash of either side. An engine knows nothing of the
 * database, and touches only what carries this installation's id. `test/engines` is its definition of done.
 */
export interface Engine {
  /** Such as `docker`; one lease an engine name. */
  readonly name: string;
  /** Where volumes live; undefined: it has none. */
  readonly volumes?: VolumeStore | undefined;
  /** Parts of a spec that are honoured; see services/sandbox/domain/requirements.ts. */
  features(): readonly string[];
  /** @throws EngineUnavailable */
  capacity(): Promise<Capacity>;
  /**
   * Brings up generation N of a sandbox, keeping its disk; returns at once if it is up already.
   * A machine of an older generation is stopped first; an N lower than the engine has seen is refused.
   * @returns the machine as it is then
   * @throws EngineFailure where trying again cannot help, EngineUnavailable where it can
   */
  ensureRunning(allocation: Allocation, signal: AbortSignal): Promise<Instance>;
  /**
   * Stops the machine of a run, or of an earlier one: asks it to end, and kills it after the grace. Its disk
   * stays. The machine of a later run is left alone, so a late call ends nothing that somebody started since.
   * @returns the machine as it is then, or undefined where the engine has none
   * @throws EngineUnavailable
   */
  stop(run: RunKey, graceMs: number): Promise<Instance | undefined>;
  /**
   * Removes machine and disk; nothing to remove is success.
   * @throws EngineUnavailable
   */
  remove(sandboxId: string): Promise<void>;
  /**
   * Every machine of this installation, running or not.
   * @throws EngineUnavailable
   */
  list(): Promise<Instance[]>;
  /**
   * Sandbox ids whose machine changed; only a hint, `list` is the truth. Ends when the engine goes away.
   * @throws EngineUnavailable
   */
  watch(signal: AbortSignal): AsyncIterable<string>;
  /**
   * What the machine of a run has written, from behind a position on, and what it goes on to write. Ends with the
   * signal, or when that machine has ended and everything is read; one that is gone, or not up yet, has nothing.
   * Settles when the engine has answered. What is not asked for is not read.
   * @throws EngineUnavailable; while it is read only where the engine stays away
   */
  logs(run: LoggedRun, after: LogPosition, signal: AbortSignal): Promise<AsyncIterable<LogChunk>>;
  close(): Promise<void>;
}

/** One run of a sandbox. */
export interface RunKey {
  sandboxId: string;
  /** Counts the sandbox's starts, from 1. */
  generation: number;
}

/** A run whose output is read. */
export interface LoggedRun extends RunKey {
  /** When its start was admitted: what a machine wrote before was of an earlier run. */
  admittedAt: Date;
}

/** How far each stream of a run is read: the offset of its last chunk, 0n before the first. */
export interface LogPosition {
  stdout: bigint;
  stderr: bigint;
}

/** A piece of output, in most engines a line with its line break; a long line comes in several. */
export interface LogChunk {
  source: LogSource;
  /** Whose position it moves. */
  stream: keyof LogPosition;
  /** Above those before it in its stream, and the same each time it is read; less than 2^63. */
  offset: bigint;
  /** Nanoseconds since the epoch, by the engine's clock. */
  time: bigint;
  text: string;
}

/** `output` is a terminal's merged stream; `system` is what the engine itself has to say of the machine. */
export type LogSource = "stdout" | "stderr" | "output" | "system";

/** Room of an engine's host, all of it. */
export interface Capacity {
  vcpus: number;
  memoryMib: number;
}

/** What the engine needs to bring one run up. */
export interface Allocation {
  sandboxId: string;
  orgId: string;
  generation: number;
  /** The sandbox's name; the hostname is made from it. */
  name: string;
  spec: EngineSpec;
  /** To be applied to the disk in this order before the first start. */
  patches: Patch[];
  /** The volumes that mounts and copy patches name, by name; "" is the organization's host volume. */
  volumes: Record<string, AllocatedVolume>;
  /** Credentials for the pull; undefined: none. `auto` is resolved by the engine. */
  registry: RegistryCredentials;
}

export interface AllocatedVolume {
  /** UUID. */
  volumeId: string;
  /** It holds more than it may: it is mounted read-only. */
  full: boolean;
}

export type RegistryCredentials =
  | { mode: "auto" }
  | { mode: "anonymous" }
  | { mode: "inline"; username: string; password: string };

/** The resolved spec as far as an engine is concerned; grows with what engines honour. */
export interface EngineSpec {
  image: string;
  resources: { vcpus: number; memoryMib: number; diskSizeMib: number | null };
  runtime: {
    /** null: the image's own; [] is an override with nothing in it. */
    cmd: string[] | null;
    entrypoint: string[] | null;
    shell: string | null;
    user: string | null;
    workdir: string | null;
    /** How much of this sandbox the engine writes to its own log; null: as the program's own level has it. */
    logLevel: "error" | "warn" | "info" | "debug" | "trace" | null;
    /** Single file name -> content. */
    scripts: Record<string, string>;
  };
  /** What is to be PID 1 in place of the engine's own; `cmd` is absolute or `auto`. */
  init: { cmd: string; args: string[]; env: { key: string; value: string }[] } | null;
  env: { key: string; value: string }[];
  labels: Record<string, string>;
  rlimits: { resource: string; soft: number; hard: number }[];
  /** As they were asked for: what fails is named by its place here; parents may come after their children. */
  mounts: {
    type: "bind" | "named" | "tmpfs" | "disk_image";
    guest: string;
    options: { nodev: boolean; noexec: boolean; nosuid: boolean; readonly: boolean };
    /** tmpfs only. */
    sizeMib?: number | null;
    /** Of a named volume. */
    name?: string;
    /** Of bind and disk_image: a path of the host volume, its root with or without a leading `/`. */
    host?: string;
    /** disk_image only. */
    format?: "qcow2" | "raw" | "vmdk";
    fstype?: string | null;
  }[];
  network: { enabled: boolean; policy: NetworkPolicy | null; maxConnections: number | null };
  lifecycle: { idleTimeoutSecs: number | null };
  pullPolicy: "if_missing" | "always" | "never";
  securityProfile: "default" | "restricted";
}

/** See services/sandbox/domain/spec.ts; first match wins in each direction. */
export interface NetworkPolicy {
  defaultEgress: NetworkAction;
  defaultIngress: NetworkAction;
  rules: {
    direction: "egress" | "ingress" | "any";
    destination:
      | { kind: "any" }
      | { kind: "cidr"; value: string }
      | { kind: "domain"; value: string }
      | { kind: "domain_suffix"; value: string }
      | { kind: "group"; value: DestinationGroup };
    action: NetworkAction;
    /** Empty: any. */
    ports: { start: number; end: number }[];
    /** Empty: any. */
    protocols: ("tcp" | "udp" | "icmpv4" | "icmpv6")[];
  }[];
}

export type NetworkAction = "allow" | "deny";
export type DestinationGroup =
  | "public"
  | "loopback"
  | "private"
  | "link_local"
  | "metadata"
  | "multicast"
  | "host";

/** See services/sandbox/domain/spec.ts; `file` has its content in base64. */
export type Patch =
  | { kind: "text"; path: string; content: string; mode: number | null; replace: boolean }
  | { kind: "file"; path: string; content: string; mode: number | null; replace: boolean }
  | { kind: "copy_file"; src: string; dst: string; mode: number | null; replace: boolean }
  | { kind: "copy_dir"; src: string; dst: string; replace: boolean }
  | { kind: "symlink"; target: string; link: string; replace: boolean }
  | { kind: "mkdir"; path: string; mode: number | null }
  | { kind: "remove"; path: string }
  | { kind: "append"; path: string; content: string };

/** A machine as the engine sees it. */
export interface Instance {
  sandboxId: string;
  generation: number;
  state: "created" | "running" | "ended";
  /** The engine's clock. */
  startedAt: Date | null;
  endedAt: Date | null;
  /** Set when ended. */
  exitCode: number | null;
  outOfMemory: boolean;
  /**
   * When the workload of a running machine ended, by the engine's clock; null while it runs, and where nobody
   * needs to know: without a workload, or without an idle time-out. Its start, where `cmd: []` leaves it to the image
   * whether there is a workload, and there is none.
   */
  workloadEndedAt: Date | null;
}

/** A start that cannot succeed as it is asked for; the message is shown to the sandbox's owner. */
export class EngineFailure extends Error {
  override name = "EngineFailure";
}

/** No room for the run now. */
export class InsufficientCapacity extends Error {
  override name = "InsufficientCapacity";
}

/** The engine does not answer; try again later. */
export class EngineUnavailable extends Error {
  override name = "EngineUnavailable";
}

/** The engine answers, but to this call not as it should: as likely as not this run's own fault. Try again for a while. */
export class EngineTrouble extends EngineUnavailable {
  override name = "EngineTrouble";
}
