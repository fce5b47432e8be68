import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface ChildOptions {
  /** For people. */
  name: string;
  /** Program and arguments. */
  command: readonly string[];
  env: Record<string, string>;
  /** Path of the file that its output goes to, one life behind the other. */
  log: string;
  /** Starts it again when it ends by itself, as a supervisor of a deployment does. */
  supervised?: boolean;
  /** System user to run as. */
  user?: { uid: number; gid: number };
}

const AGAIN_MS = 250;

/** As `npm start` has it: what a role compiles takes most of its start. */
export const COMPILED = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/sandgate"),
};

/** What runs now; none of it outlives this process. */
const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** A program that is started, killed, frozen and started again, always with the same settings. */
export class Child {
  readonly name: string;
  /** How often it ended without being asked to. */
  crashes = 0;
  readonly #options: ChildOptions;
  #process: ChildProcess | undefined;
  #wanted = false;

  constructor(options: ChildOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether there is a process. */
  get lives(): boolean {
    return this.#process !== undefined;
  }

  start(): void {
    if (this.#process) return;
    this.#wanted = true;
    const { command, env, log, user } = this.#options;
    const [file = "", ...args] = command;
    const output = openSync(log, "a", 0o600);
    const { PATH = "", HOME = "" } = process.env;
    const child = spawn(file, args, {
      env: { PATH, HOME, ...COMPILED, ...env },
      stdio: ["ignore", output, output],
      ...user,
    });
    closeSync(output);
    this.#process = child;
    living.add(child);
    child.once("exit", () => {
      living.delete(child);
      this.#ended();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** SIGKILL, also of a frozen one; returns when it is gone. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM. @returns its exit code */
  async stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** All that it has written. */
  output(): string {
    return readFileSync(this.#options.log, "utf8");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    this.#wanted = false;
    const child = this.#process;
    if (!child) return null;
    const ended = once(child, "exit");
    child.kill(signal);
    const [code] = await ended;
    return code;
  }

  #ended(): void {
    this.#process = undefined;
    if (!this.#wanted) return;
    this.crashes += 1;
    if (this.#options.supervised)
      void sleep(AGAIN_MS).then(() => {
        if (this.#wanted) this.start();
      });
  }
}
