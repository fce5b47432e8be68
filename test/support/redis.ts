import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { Child } from "./child.ts";
import { comeTrue } from "./come-true.ts";
import { freePort } from "./ports.ts";

const PROGRAM = "redis-server";

/** A Redis server of a test's own; it keeps nothing on a disk. */
export class TestRedis {
  readonly url: string;
  readonly #port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "sandgate-redis-"));
  readonly #child: Child;

  constructor(port: number) {
    this.#port = port;
    this.url = `redis://127.0.0.1:${port}`;
    const settings = { port, bind: "127.0.0.1", dir: this.#folder, save: "", appendonly: "no" };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.#child = new Child({
      name: PROGRAM,
      command: [PROGRAM, ...args],
      env: {},
      log: join(this.#folder, "log"),
    });
  }

  /** Returns when it answers. */
  async start(): Promise<void> {
    this.#child.start();
    await comeTrue(async () => (await this.send("PING")) === "+PONG");
  }

  async kill(): Promise<void> {
    await this.#child.kill();
  }

  freeze(): void {
    this.#child.signal("SIGSTOP");
  }

  thaw(): void {
    this.#child.signal("SIGCONT");
  }

  /** Sends one command. @returns the answer's first line; "": there was none */
  async send(command: string): Promise<string> {
    const answer = Promise.withResolvers<string>();
    const socket = connect(this.#port, "127.0.0.1", () => socket.write(`${command}\r\n`));
    socket.once("data", (data) => answer.resolve(String(data).split("\r\n")[0] ?? ""));
    socket.once("error", () => answer.resolve(""));
    return answer.promise.finally(() => socket.destroy());
  }

  async remove(): Promise<void> {
    await this.#child.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export async function startRedis(): Promise<TestRedis> {
  const redis = new TestRedis(await freePort());
  await redis.start();
  return redis;
}

/**
 * A suite that needs a Redis server; without the program it is skipped by its name.
 * @throws Error when there is none and SANDGATE_REQUIRE_DOCKER, which means all that tests need, is set
 */
export function describeWithRedis(name: string, suite: () => void): void {
  if (isInstalled()) return void describe(name, suite);
  const why = `${PROGRAM} is not installed`;
  if (process.env.SANDGATE_REQUIRE_DOCKER === "1") throw new Error(why);
  console.warn(`\n  Tests that need Redis are SKIPPED: ${why}\n`);
  describe.skip(`${name} [skipped: ${why}]`, suite);
}

function isInstalled(): boolean {
  try {
    execFileSync(PROGRAM, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
