import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import type { FileServer } from "./file-servers.ts";
import { timed } from "./measure.ts";

const AT_ONCE = 16;
const TEXT = "0123456789abcdef";

type Send = (method: string, url: string, path: string, body?: string) => Promise<string>;

/** Many small files: made, listed, looked at one by one, removed; here, on the plain server, and on the file system itself. */
export async function manyFiles(
  count: number,
  files: string,
  authorization: string,
  plain: FileServer | undefined,
): Promise<void> {
  if (!plain) throw new Error("there is no plain server");
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const send = sender(agent, authorization);
  const names = Array.from({ length: count }, (_, i) => `many/${i}`);
  const perSecond = (ms: number) =>
    `${(ms / 1_000).toFixed(1)} s, ${((count / ms) * 1_000).toFixed(0)} a second`;
  console.log(`${count} files of ${TEXT.length} bytes, ${AT_ONCE} connections kept alive:`);
  const say = (what: string, ms: number) => console.log(`  ${what.padEnd(34)} ${perSecond(ms)}`);

  say("sandgate: put", await each(names, (name) => send("PUT", `${files}/content`, name, TEXT)));
  say(
    "node, fdatasync: put",
    await each(names, (name) => send("PUT", `${plain.url}/${name}`, name, TEXT)),
  );
  let listed = 0;
  say(
    "sandgate: listed",
    await timed(async () => {
      listed = JSON.parse(await send("GET", files, "many")).entries.length;
    }),
  );
  if (listed !== count) throw new Error(`${listed} are listed`);
  const { folder } = plain;
  say(
    "file system: readdir and lstat",
    await timed(async () => {
      for (const name of await readdir(folder)) await lstat(join(folder, name));
    }),
  );
  say("sandgate: looked at", await each(names, (name) => send("GET", `${files}/stat`, name)));
  say("node: looked at", await each(names, (name) => send("POST", `${plain.url}/${name}`, name)));
  say("sandgate: removed as one", await timed(() => send("DELETE", files, "many")));
  say("file system: rm", await timed(() => rm(folder, { recursive: true })));
  await mkdir(folder);
  agent.destroy();
}

/** Milliseconds that the work took, so many at once as there are connections. */
function each(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<number> {
  const left = names.values();
  const worker = async () => {
    for (const name of left) await work(name);
  };
  return timed(() => Promise.all(Array.from({ length: AT_ONCE }, worker)));
}

function sender(agent: Agent, authorization: string): Send {
  return async (method, url, path, body) => {
    const headers = {
      authorization,
      "x-msb-file-path": Buffer.from(path).toString("base64url"),
      "x-msb-file-recursive": "true",
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    httpRequest(url, { method, agent, headers }, resolve).on("error", reject).end(body);
    const response = await promise;
    const text = Buffer.concat(await response.toArray()).toString();
    if (response.statusCode !== 200)
      throw new Error(`${method} ${url}: ${response.statusCode} ${text}`);
    return text;
  };
}
