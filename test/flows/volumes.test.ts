import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Api, image, type Program } from "../support/program.ts";
import { installSdk } from "../support/sdk.ts";
import { inBothShapes } from "../support/shapes.ts";

const run = promisify(execFile);
const SIZE = 24 * 1024 * 1024;

/** Whoever calls, by whatever program. */
interface User {
  url: string;
  apiKey: string;
  api: Api;
}

const pathHeader = (path: string) => ({
  "x-msb-file-path": Buffer.from(path).toString("base64url"),
});

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest("hex");
}

async function createVolume({ api }: User, name: string, more = {}): Promise<string> {
  const { status, body } = await api("POST", "/v1/volumes", { name, ...more });
  expect({ status, name: body.name }).toEqual({ status: 200, name });
  return body.id;
}

function curlArgs({ url, apiKey }: User, path: string, file: string, ...args: string[]): string[] {
  const headers = { authorization: `Bearer ${apiKey}`, ...pathHeader(file) };
  const named = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  return ["-sS", "--max-time", "60", ...named, ...args, `${url}${path}`];
}

/** What curl prints: the body, and its status behind it. */
async function curl(user: User, path: string, file: string, ...args: string[]) {
  const all = curlArgs(user, path, file, "-w", "\n%{http_code}", ...args);
  const { stdout } = await run("curl", all, { maxBuffer: 2 ** 26 });
  const cut = stdout.lastIndexOf("\n");
  return { status: Number(stdout.slice(cut + 1)), body: stdout.slice(0, cut) };
}

/** An upload that is under way, and of which no end is in sight. */
function endlessUpload(user: User, path: string, file: string, ...args: string[]): ChildProcess {
  const child = spawn("curl", curlArgs(user, path, file, "-T", "-", ...args), {
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.stdin.on("error", () => undefined).write(randomBytes(5 * 1024 * 1024));
  return child;
}

/** What holds of files wherever the services are. */
function filesHold(user: () => User, folder: () => string): void {
  test("a file goes in and comes out by curl, whole and in part", async () => {
    const id = await createVolume(user(), "curl");
    const content = `/v1/volumes/${id}/files/content`;
    const original = join(folder(), "original");
    const copy = join(folder(), "copy");
    await writeFile(original, randomBytes(SIZE));

    const path = "data/größe ⏳.bin";
    const put = await curl(user(), content, path, "-T", original);
    expect(put.status).toBe(200);
    const { metadata } = JSON.parse(put.body);
    expect(metadata).toMatchObject({ path: `/${path}`, kind: "file", size: SIZE, mode: 0o644 });
    const got = await curl(user(), content, `/${path}`, "-o", copy);
    expect(got).toEqual({ status: 200, body: "" });
    expect(await sha256(copy)).toBe(await sha256(original));

    const half = String(SIZE / 2);
    await rm(copy);
    await curl(user(), content, path, "-o", copy, "-r", `0-${SIZE / 2 - 1}`);
    expect(await curl(user(), content, path, "-o", copy, "-C", half)).toMatchObject({
      status: 206,
    });
    expect(await sha256(copy)).toBe(await sha256(original));
    const etag = join(folder(), "etag");
    await curl(user(), content, path, "-o", copy, "--etag-save", etag);
    expect(await curl(user(), content, path, "-o", copy, "--etag-compare", etag)).toMatchObject({
      status: 304,
    });
    await curl(user(), content, path, "-T", original);
    expect(await curl(user(), content, path, "-o", copy, "--etag-compare", etag)).toMatchObject({
      status: 200,
    });

    // In chunks, from a pipe, in the place of what is there.
    const piped = curlArgs(user(), content, path, "-T", "-");
    const child = spawn("curl", piped, { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.end("short");
    const [answer] = await Promise.all([child.stdout.toArray(), once(child, "close")]);
    expect(JSON.parse(Buffer.concat(answer).toString()).metadata.size).toBe(5);
    expect(await curl(user(), content, path)).toEqual({ status: 200, body: "short" });
  }, 120_000);

  test("a client that is gone before its file is leaves nothing", async () => {
    const id = await createVolume(user(), "cut");
    const files = `/v1/volumes/${id}/files`;
    await curl(user(), `${files}/content`, "kept", "-X", "PUT", "--data-binary", "before");
    for (const args of [[], ["-H", `content-length: ${SIZE}`, "-H", "transfer-encoding:"]]) {
      const child = endlessUpload(user(), `${files}/content`, "kept", ...args);
      const seen = () => child.stdin?.writableLength;
      await expect.poll(seen).toBe(0);
      child.kill("SIGKILL");
      await once(child, "close");
    }
    const list = async () => {
      const { body } = await user().api("GET", files);
      return body.entries.map(({ path, size }: { path: string; size: number }) => [path, size]);
    };
    // What was on its way is over by the time that the next is done.
    await curl(user(), `${files}/content`, "next", "-X", "PUT", "--data-binary", "next");
    expect((await list()).sort()).toEqual([
      ["/kept", 6],
      ["/next", 4],
    ]);
    expect(await curl(user(), `${files}/content`, "kept")).toMatchObject({ body: "before" });
  }, 60_000);

  test("a directory with thousands of files is listed, and removed", async () => {
    const id = await createVolume(user(), "many");
    const files = `/v1/volumes/${id}/files`;
    const names = Array.from({ length: 1_000 }, (_, i) => `deep/er/${i}.txt`);
    const put = async (name: string) => {
      const headers = pathHeader(name);
      await user().api("PUT", `${files}/content`, undefined, { headers, body: name });
    };
    for (let at = 0; at < names.length; at += 50)
      await Promise.all(names.slice(at, at + 50).map(put));
    const headers = pathHeader("deep/er");
    const { body } = await user().api("GET", files, undefined, { headers });
    const paths: string[] = body.entries.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(names.map((name) => `/${name}`).sort());
    const remove = (more = {}) =>
      user().api("DELETE", files, undefined, { headers: { ...pathHeader("deep"), ...more } });
    expect(await remove()).toMatchObject({
      status: 409,
      body: { error: { code: "invalid_request" } },
    });
    expect(await remove({ "x-msb-file-recursive": "true" })).toMatchObject({ status: 200 });
    expect((await user().api("GET", files)).body).toEqual({ entries: [] });
  }, 120_000);
}

inBothShapes("volumes", (startProgram) => {
  let program: Program;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandgate-files-"));
    program = await startProgram();
  }, 120_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true });
  });

  filesHold(
    () => program,
    () => folder,
  );

  test("a volume lives, is mounted, and is in use for as long as that", async () => {
    const { api } = program;
    const id = await createVolume(program, "trained", { capacity_gib: 2, labels: { a: "b" } });
    const before = await api("GET", `/v1/volumes/${id}`);
    expect(before.body).toMatchObject({ capacity_bytes: 2 ** 31, labels: { a: "b" } });
    expect((await api("PATCH", `/v1/volumes/${id}`, { labels: {} })).body).toMatchObject({
      capacity_bytes: 2 ** 31,
      labels: {},
    });
    expect((await api("PATCH", `/v1/volumes/${id}`, { capacity_gib: null })).body).toMatchObject({
      capacity_bytes: null,
    });
    expect(await api("POST", "/v1/volumes", { name: "trained" })).toMatchObject({
      status: 409,
      body: { error: { code: "volume_already_exists", message: "'name' already exists" } },
    });

    const mounts = (name: string) => [{ type: "named", name, guest: "/data" }];
    const start = "/v1/sandboxes?start=true&wait_for=running";
    expect(await api("POST", start, { ...image(), mounts: mounts("nobody") })).toMatchObject({
      status: 400,
      body: {
        error: { code: "invalid_request", details: { errors: [{ field: "mounts[0].name" }] } },
      },
    });
    const trainer = { ...image(), name: "trainer", mounts: mounts("trained") };
    const { body: sandbox } = await api("POST", start, trainer);
    expect(sandbox.status).toBe("running");
    expect(JSON.stringify(sandbox.spec.mounts)).not.toContain("trained");
    const refused = await api("DELETE", `/v1/volumes/${id}`);
    expect(refused).toMatchObject({ status: 409, body: { error: { code: "volume_in_use" } } });
    expect(refused.body.error.message).toContain("trainer");

    await api("DELETE", `/v1/sandboxes/${sandbox.id}`);
    const remove = () => api("DELETE", `/v1/volumes/${id}`);
    await expect.poll(async () => (await remove()).status).toBe(200);
    expect((await remove()).status).toBe(404);
    await createVolume(program, "trained");
  }, 60_000);

  test("the host volume is there from the beginning, and stays", async () => {
    const { api } = program;
    const { body: host } = await api("GET", "/v1/volumes/default");
    expect(host).toMatchObject({ kind: "host", name: null, status: "active", labels: {} });
    expect((await api("GET", "/v1/volumes")).body[0]).toEqual(host);
    const path = `/v1/volumes/${host.id}`;
    for (const answer of [await api("DELETE", path), await api("PATCH", path, { capacity_gib: 1 })])
      expect(answer).toMatchObject({ status: 409, body: { error: { code: "invalid_request" } } });
  });

  test("a volume takes no more than it may, and nothing of what is too much", async () => {
    const id = await createVolume(program, "capped", { capacity_gib: 1 });
    const content = `/v1/volumes/${id}/files/content`;
    const length = ["-H", `content-length: ${2 ** 30 + 1}`, "-H", "transfer-encoding:"];
    const file = join(folder, "answer");
    const args = curlArgs(program, content, "big", "-T", "-", ...length, "-o", file);
    const child = spawn("curl", args, { stdio: ["pipe", "ignore", "ignore"] });
    // While curl waits for input it does not see that it is answered.
    child.stdin.on("error", () => undefined);
    const sending = setInterval(() => child.stdin.write(Buffer.alloc(1024)), 50);
    await once(child, "close");
    clearInterval(sending);
    const { error } = JSON.parse(await readFile(file, "utf8"));
    expect(error).toMatchObject({
      code: "quota_exceeded",
      details: { quota: "capacity_gib", limit: 2 ** 30, requested: 2 ** 30 + 1 },
    });
    expect((await program.api("GET", `/v1/volumes/${id}/files`)).body).toEqual({ entries: [] });
  });

  test("a change of files is made once for its key", async () => {
    const { api } = program;
    const id = await createVolume(program, "keyed");
    const files = `/v1/volumes/${id}/files`;
    const keyed = (key: string, more = {}) => ({ headers: { "idempotency-key": key, ...more } });
    const body = "x";
    await api("PUT", `${files}/content`, undefined, { headers: pathHeader("a"), body });
    const rename = () => api("POST", `${files}/rename`, { from: "a", to: "b" }, keyed("rename-1"));
    for (const replayed of [null, "true"]) {
      const answer = await rename();
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, replayed]);
    }
    const remove = (path: string) =>
      api("DELETE", files, undefined, keyed("remove-1", pathHeader(path)));
    for (const replayed of [null, "true"]) {
      const answer = await remove("b");
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, replayed]);
    }
    expect(await remove("c")).toMatchObject({
      status: 422,
      body: { error: { code: "idempotency_key_reused" } },
    });
  });

  test("another organization's volume is not there, on any route", async () => {
    const id = await createVolume(program, "private");
    const other = await program.addOrganization("other-files");
    const files = `/v1/volumes/${id}/files`;
    for (const [method, path, body] of [
      ["GET", `/v1/volumes/${id}`],
      ["PATCH", `/v1/volumes/${id}`, {}],
      ["DELETE", `/v1/volumes/${id}`],
      ["GET", files],
      ["GET", `${files}/stat`],
      ["GET", `${files}/exists`],
      ["GET", `${files}/content`],
      ["PUT", `${files}/content`],
      ["DELETE", files],
      ["POST", `${files}/mkdir`, { path: "a" }],
      ["POST", `${files}/copy`, { from: "a", to: "b" }],
      ["POST", `${files}/rename`, { from: "a", to: "b" }],
    ] as const)
      expect(await other.api(method, path, body, { headers: pathHeader("a") })).toMatchObject({
        status: 404,
        body: { error: { code: "volume_not_found" } },
      });
  });

  test("the official TypeScript SDK: volumes and their files", async () => {
    const sdk = await installSdk();
    const file = join(sdk, `volumes-${process.pid}.mjs`);
    await writeFile(file, SCRIPT);
    const env = {
      ...process.env,
      MSB_BACKEND: "cloud",
      MSB_API_URL: program.url,
      MSB_API_KEY: program.apiKey,
    };
    const { stdout } = await run(process.execPath, [file], { env, timeout: 60_000 });
    expect(JSON.parse(stdout)).toEqual({
      name: "from-sdk",
      capacity: 2 ** 30,
      labels: [["team", "build"]],
      listed: true,
      isDefault: true,
      text: "hello there",
      stat: ["file", 11],
      streamed: 3_000_000,
      entries: ["/data/notes.txt", "/data/stream.bin"],
      copied: "hello there",
      renamed: [false, true],
      missing: "sandboxFsOps",
      outside: "invalidConfig",
      removed: false,
      taken: "volumeAlreadyExists",
      gone: "volumeNotFound",
    });
  }, 120_000);
});

const SCRIPT = `
import { Volume } from "microsandbox";
const code = (work) => work.then(() => "none", ({ code }) => code);
const build = () => Volume.builder("from-sdk").quota(1024).label("team", "build").create();
const volume = await build();
const handle = await Volume.get("from-sdk");
const seen = { name: volume.name, capacity: handle.capacityBytes, labels: handle.labels };
seen.listed = (await Volume.list()).some(({ name }) => name === "from-sdk");
seen.isDefault = (await Volume.getDefault()).isDefault;
const fs = handle.fs();
await fs.write("/data/notes.txt", "hello there");
seen.text = await fs.readToString("data/notes.txt");
const { kind, size } = await fs.stat("/data/notes.txt");
seen.stat = [kind, size];
const sink = await fs.writeStream("/data/stream.bin");
for (let i = 0; i < 30; i += 1) await sink.write(new Uint8Array(100_000));
await sink.close();
seen.streamed = 0;
for await (const chunk of await fs.readStream("/data/stream.bin")) seen.streamed += chunk.length;
seen.entries = (await fs.list("/data")).map(({ path }) => path).sort();
await fs.mkdir("/other/deep");
await fs.copy("/data/notes.txt", "/other/deep/copy.txt");
seen.copied = await fs.readToString("/other/deep/copy.txt");
await fs.rename("/other/deep/copy.txt", "/other/moved.txt");
seen.renamed = [await fs.exists("/other/deep/copy.txt"), await fs.exists("/other/moved.txt")];
seen.missing = await code(fs.read("/nothing"));
seen.outside = await code(fs.read("/../../etc/passwd"));
await fs.remove("/other/moved.txt");
await fs.removeDir("/data");
seen.removed = await fs.exists("/data");
seen.taken = await code(build());
await handle.remove();
seen.gone = await code(Volume.get("from-sdk"));
console.log(JSON.stringify(seen));
`;
