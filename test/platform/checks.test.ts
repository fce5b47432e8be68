import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

function run(script: string, args: string[], env: Record<string, string> = {}) {
  return new Promise<{ code: number; said: string }>((done) => {
    const options = { cwd: ROOT, env: { ...process.env, ...env } };
    execFile(
      process.execPath,
      [join(ROOT, "scripts", script), ...args],
      options,
      (error, _, said) => done({ code: typeof error?.code === "number" ? error.code : 0, said }),
    );
  });
}

/** Audits against a registry that knows these vulnerabilities of fastify. */
async function audit(severity: string | undefined, env?: Record<string, string>, title = "t") {
  // npm remembers what it has made of an advisory.
  const id = randomInt(2 ** 40);
  const known = { id, title, url: "https://example.org/1", vulnerable_versions: "<99" };
  const registry = createServer((request, response) => {
    request.resume().on("end", () => {
      const asked = severity !== undefined && request.url?.endsWith("/advisories/bulk");
      const body = severity === "none" ? {} : { fastify: [{ ...known, severity }] };
      response.writeHead(asked ? 200 : 405, { "content-type": "application/json" });
      response.end(JSON.stringify(asked ? body : {}));
    });
  }).listen(0, "127.0.0.1");
  await once(registry, "listening");
  const { port } = registry.address() as AddressInfo;
  const ended = await run("check-audit.ts", ["--registry", `http://127.0.0.1:${port}`], env);
  registry.close();
  return ended;
}

test("the audit fails on what is high, and not on less", async () => {
  expect(await audit("high")).toMatchObject({ code: 1, said: expect.stringContaining("fastify") });
  expect(await audit("moderate")).toMatchObject({ code: 0, said: "" });
  expect(await audit("none")).toMatchObject({ code: 0, said: "" });
}, 60_000);

test("a report of any length is read to its end", async () => {
  const long = "t".repeat(2 * 1024 * 1024);
  expect(await audit("high", {}, long)).toMatchObject({
    code: 1,
    said: expect.stringContaining("A vulnerability (high): fastify"),
  });
}, 60_000);

test("where the registry cannot be asked it says so, and fails where that is required", async () => {
  const unasked = expect.stringContaining("NOT AUDITED");
  expect(await audit(undefined)).toEqual({ code: 0, said: unasked });
  expect(await audit(undefined, { SANDGATE_REQUIRE_AUDIT: "1" })).toEqual({
    code: 1,
    said: unasked,
  });
}, 60_000);

test("licences that nobody has allowed are named", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-lock-"));
  const lock = async (packages: Record<string, object>) => {
    const path = join(folder, "lock.json");
    await writeFile(path, JSON.stringify({ packages: { "": {}, ...packages } }));
    return run("check-licences.ts", [path]);
  };
  expect(await lock({ "node_modules/a": { license: "MIT" } })).toEqual({ code: 0, said: "" });
  expect(await lock({ "node_modules/a": { license: "MPL-2.0", dev: true } })).toMatchObject({
    code: 0,
  });
  for (const license of ["AGPL-3.0", "MPL-2.0", undefined])
    expect(await lock({ "node_modules/a/node_modules/b": { license } })).toEqual({
      code: 1,
      said: `A licence that nobody has allowed: b: ${license}\n`,
    });
  expect((await run("check-licences.ts", [])).said).toBe("");
  await rm(folder, { recursive: true });
});
