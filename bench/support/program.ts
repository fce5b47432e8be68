import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { generateApiKey } from "../../runtime/api-key.ts";
import { freePort } from "../../test/support/ports.ts";

/** The program in a process of its own, on a folder of its own. */
export interface BenchProgram {
  url: string;
  pid: number;
  headers: Record<string, string>;
  /** The answer's body. @throws Error where it is no 200 */
  post(path: string, body: unknown): Promise<{ id: string; status: string }>;
  stop(): Promise<void>;
}

/** Whether a GET is answered with 200. */
export async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ status }) => status === 200,
    () => false,
  );
}

export async function startBenchProgram(settings: Record<string, string>): Promise<BenchProgram> {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
  const url = `http://127.0.0.1:${await freePort()}`;
  const key = generateApiKey();
  const own = {
    DATA_DIR: dataDir,
    PORT: new URL(url).port,
    BOOTSTRAP_API_KEY: key,
    RATE_LIMIT_PER_SEC: "0",
  };
  const env = { ...process.env, LOG_LEVEL: "error", ...own, ...settings };
  const child = spawn(process.execPath, ["main.ts"], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  while (!(await answers(`${url}/readyz`))) {
    if (child.exitCode !== null) throw new Error("the program did not start");
    await sleep(20);
  }
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return {
    url,
    pid: child.pid ?? Number.NaN,
    headers,
    post: async (path, body) => {
      const request = { method: "POST", headers, body: JSON.stringify(body) };
      const answer = await fetch(`${url}${path}`, request);
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
      return JSON.parse(text);
    },
    stop: () => stop(child, dataDir),
  };
}

async function stop(child: ChildProcess, dataDir: string): Promise<void> {
  child.kill("SIGTERM");
  await once(child, "exit");
  await rm(dataDir, { recursive: true, force: true });
}
