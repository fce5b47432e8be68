import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../test/support/ports.ts";

/** A server that others are held against: `GET` and `PUT` of the files of a folder. */
export interface FileServer {
  url: string;
  /** Of the process that does the work. */
  pid: number;
  folder: string;
  stop(): Promise<void>;
}

/** node:http and nothing else: streams to a file beside the one that is meant, then renames. @param sync fdatasync before that */
export async function startPlainServer(sync: boolean): Promise<FileServer> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-plain-"));
  const port = await freePort();
  const args = [import.meta.filename, folder, String(port), String(sync)];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  return served(child, child.pid, folder, port);
}

/** Debian's nginx, one worker, its DAV module for PUT. */
export async function startNginx(): Promise<FileServer> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-nginx-"));
  const port = await freePort();
  await mkdir(join(folder, "files"));
  const config = `user root; worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error;
events {}
http {
  access_log off; sendfile on; client_max_body_size 0;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server { listen 127.0.0.1:${port}; root ${folder}/files; location / { dav_methods PUT DELETE; create_full_put_path on; } }
}`;
  await writeFile(join(folder, "nginx.conf"), config);
  const args = ["-c", join(folder, "nginx.conf"), "-e", join(folder, "error")];
  const child = spawn("nginx", args, { stdio: "inherit" });
  return served(child, child.pid, folder, port);
}

async function served(
  child: ChildProcess,
  pid: number | undefined,
  folder: string,
  port: number,
): Promise<FileServer> {
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  while (!(await answers())) {
    if (child.exitCode !== null || pid === undefined)
      throw new Error("a file server did not start");
    await sleep(20);
  }
  const stop = async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    await rm(folder, { recursive: true, force: true });
  };
  return { url, pid: pid ?? Number.NaN, folder, stop };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  folder: string,
  sync: boolean,
): Promise<void> {
  const file = join(folder, encodeURIComponent(request.url ?? ""));
  if (request.method === "PUT") await put(request, file, sync);
  const { size } = await stat(file);
  if (request.method !== "GET") return void response.end(JSON.stringify({ size }));
  response.setHeader("content-length", size);
  await pipeline(createReadStream(file), response);
}

async function put(request: IncomingMessage, file: string, sync: boolean): Promise<void> {
  const staged = `${file}.${process.hrtime.bigint()}`;
  await pipeline(request, createWriteStream(staged));
  if (sync) {
    await using handle = await open(staged, "r+");
    await handle.datasync();
  }
  await rename(staged, file);
}

if (import.meta.main) {
  const [folder = "", port, sync] = process.argv.slice(2);
  createServer((request, response) => {
    answer(request, response, folder, sync === "true").catch(() => {
      // A client that has all of it is gone before Node has noticed.
      if (response.headersSent) response.destroy();
      else response.writeHead(404).end();
    });
  }).listen(Number(port), "127.0.0.1");
}
