import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findBinaries } from "../../../runtime/postgres/binaries.ts";
import { ensureCluster } from "../../../runtime/postgres/cluster.ts";
import { ensureDatabase, isReady } from "../../../runtime/postgres/connect.ts";
import { chooseIdentity } from "../../../runtime/postgres/identity.ts";
import { SERVER_SETTINGS, toArguments } from "../../../runtime/postgres/settings.ts";
import { makeSocketFolder, socketUrl } from "../../../runtime/postgres/socket.ts";
import { Child } from "../../support/child.ts";

// The machine stays up, so what was written survives without being flushed; what was committed must be written.
const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "120" };

/** A PostgreSQL that may be killed, always on the same data and at the same URL. */
export interface KillablePostgres {
  child: Child;
  url: string;
}

export async function startKillablePostgres(folder: string): Promise<KillablePostgres> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { initdb, postgres } = findBinaries();
  const identity = await chooseIdentity(folder, postgres);
  const data = await ensureCluster(folder, initdb, identity);
  const socket = await makeSocketFolder(folder, identity);
  const child = new Child({
    name: "postgres",
    command: [
      ...identity.prefix,
      postgres,
      ...toArguments(data, socket, { ...SERVER_SETTINGS, ...SETTINGS }),
    ],
    env: { LC_ALL: "C", TZ: "UTC" },
    log: join(folder, "log"),
    supervised: true,
    ...(identity.user && { user: identity.user }),
  });
  child.start();
  await untilReady(socketUrl(socket, "postgres"));
  const url = socketUrl(socket, "chaos");
  await ensureDatabase(socketUrl(socket, "postgres"), url, "chaos");
  return { child, url };
}

/** Returns when it takes connections, recovered from whatever happened to it. */
export async function untilReady(url: string): Promise<void> {
  while (!(await isReady(url))) await sleep(50);
}
