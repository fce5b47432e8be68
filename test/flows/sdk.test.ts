import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Program } from "../support/program.ts";
import { installSdk } from "../support/sdk.ts";
import { inBothShapes } from "../support/shapes.ts";

inBothShapes("the official SDK", (startProgram) => {
  const run = promisify(execFile);

  let program: Program;
  let folder: string;

  beforeAll(async () => {
    folder = await installSdk();
    program = await startProgram();
  }, 180_000);
  afterAll(() => program.close());

  /** Runs a user's program against ours, the SDK being told only the URL and the key. */
  async function user(script: string): Promise<unknown> {
    const file = join(folder, `user-${process.pid}.mjs`);
    await writeFile(file, script);
    const env = {
      ...process.env,
      MSB_BACKEND: "cloud",
      MSB_API_URL: program.url,
      MSB_API_KEY: program.apiKey,
    };
    const { stdout } = await run(process.execPath, [file], { env, timeout: 60_000 });
    return JSON.parse(stdout);
  }

  test("the official TypeScript SDK: create, get, list, stop, start, remove", async () => {
    const seen = await user(`
    import { Sandbox } from "microsandbox";
    const sandbox = await Sandbox.builder("from-sdk").image("alpine").cpus(1).memory(512)
      .env("A", "B").workdir("/tmp").create();
    const settled = async () => {
      for (;;) {
        const { status } = await Sandbox.get("from-sdk");
        if (status === "stopped") return status;
        await new Promise((go) => setTimeout(go, 100));
      }
    };
    const seen = [sandbox.name, (await Sandbox.get("from-sdk")).status];
    seen.push((await Sandbox.list()).sandboxes.map(({ name }) => name));
    await sandbox.stop();
    seen.push(await settled());
    const again = await Sandbox.start("from-sdk");
    seen.push((await Sandbox.get("from-sdk")).status);
    await again.stop();
    await settled();
    await Sandbox.remove("from-sdk");
    seen.push(await Sandbox.get("from-sdk").catch(({ code }) => code));
    console.log(JSON.stringify(seen));
  `);
    expect(seen).toEqual([
      "from-sdk",
      "running",
      ["from-sdk"],
      "stopped",
      "running",
      "sandboxNotFound",
    ]);
  }, 90_000);

  test("what the SDK sends with every create is stored as it was meant", async () => {
    await user(`
    import { Sandbox } from "microsandbox";
    await Sandbox.builder("spec").image("python:3.12").cpus(2).memory(1024).env("K", "v").workdir("/srv")
      .entrypoint(["python", "-u"]).maxDuration(60).create();
    console.log("0");
  `);
    const { body } = await program.api("GET", "/v1/sandboxes/by-name/spec");
    expect(body.spec).toMatchObject({
      image: "python:3.12",
      resources: { vcpus: 2, memory_mib: 1024 },
      env: [{ key: "K", value: "v" }],
      runtime: { workdir: "/srv", entrypoint: ["python", "-u"] },
      lifecycle: { max_duration_secs: 60, ephemeral: false },
    });
  }, 90_000);
});
