import { randomBytes } from "node:crypto";
import { generateApiKey } from "../../runtime/api-key.ts";
import type { Running } from "./contenders.ts";
import { cursorsFrom } from "./cursors.ts";
import { fill, type Stock } from "./database.ts";
import { type Alone, type Ground, openGround, pidOf, ready } from "./ground.ts";
import { makeOne } from "./make.ts";

/** Every contender, running on one PostgreSQL server and one database. */
export interface Arena {
  running: Running;
  stock: Stock;
  databaseUrl: string;
  postmaster: number;
  close(): Promise<void>;
}

/** @param count sandboxes of the one organization */
export async function openArena(count: number): Promise<Arena> {
  // So that requests can come from many addresses.
  const ground = await openGround({ TRUSTED_PROXIES: "127.0.0.1" });
  try {
    const running = await startAll(ground);
    const { databaseUrl, postmaster, close } = ground;
    const stock = await stockUp(ground, running.one.port, count);
    return { running, stock, databaseUrl, postmaster, close };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

async function startAll(ground: Ground): Promise<Running> {
  const one = await ground.alone("one", "main.ts");
  const pg = await startMonolith(ground, "pg");
  const prisma = await startMonolith(ground, "prisma");
  const roles = await ground.roles();
  // The schema is made by one of them alone.
  one.child.start();
  await ready(one.isReady);
  for (const child of roles.all) child.start();
  await ready(roles.isReady);
  const at = ({ child, port }: Alone) => ({ pid: pidOf(child), port });
  return {
    one: at(one),
    pg: at(pg),
    prisma: at(prisma),
    separate: {
      gateway: pidOf(roles.gateway),
      service: pidOf(roles.sandbox),
      others: [roles.organization, ...roles.billings, ...roles.orchestrators].map(pidOf),
      port: Number(new URL(roles.url).port),
      rpcPort: Number(roles.rpc.sandbox.split(":")[1]),
    },
  };
}

/** It takes requests at once, and looks at the database with the first. */
export async function startMonolith(ground: Ground, name: "pg" | "prisma"): Promise<Alone> {
  const monolith = await ground.alone(name, "bench/contenders/main.ts", name);
  monolith.child.start();
  return monolith;
}

export async function stockUp(ground: Ground, port: number, count: number): Promise<Stock> {
  const { apiKey, serviceToken, databaseUrl } = ground;
  const made = await makeOne(port, apiKey);
  const some = await fill(databaseUrl, made.id, count);
  return {
    apiKey,
    wrongKey: generateApiKey(),
    serviceToken,
    wrongToken: randomBytes(32).toString("hex"),
    orgId: made.org_id,
    ...some,
    cursors: await cursorsFrom(ground, made.org_id, 0),
  };
}
