import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { startOneProcess } from "../../app/one-process.ts";
import { generateApiKey, hashApiKey } from "../../runtime/api-key.ts";
import { readConfig } from "../../runtime/env.ts";
import { Lifecycle } from "../../runtime/lifecycle.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createProgramDatabase } from "./program-database.ts";

/** The whole program, on ports and a database of its own. */
export interface Program {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  /** Where each service takes calls, such as `127.0.0.1:40124`; in one process all at the same place. */
  rpc: Record<ServiceName, string>;
  /** The key of its first organization. */
  apiKey: string;
  databaseUrl: string;
  dataDir: string;
  /** Calls as the first organization. */
  api: Api;
  /** One more organization, and how to call as it. */
  addOrganization(slug: string): Promise<{ orgId: string; api: Api }>;
  close(): Promise<void>;
}

/** An answer of the public API. */
export interface Answer {
  status: number;
  headers: Headers;
  // Whatever the API answers; each test says what it expects of it.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  body: any;
}

export type Api = (
  method: string,
  path: string,
  body?: unknown,
  init?: RequestInit,
) => Promise<Answer>;

export type ServiceName = "sandbox" | "organization" | "orchestrator" | "billing";

/** All of it in this process. @param env settings beside those that a test needs */
export async function startProgram(env: Record<string, string> = {}): Promise<Program> {
  const database = await createProgramDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-program-"));
  const apiKey = generateApiKey();
  const config = readConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    PORT: "0",
    RPC_PORT: "0",
    ENGINE: "simulated",
    BOOTSTRAP_API_KEY: apiKey,
    ...env,
  });
  const log = pino({ level: "silent" });
  const lifecycle = new Lifecycle(log);
  const onCrash = (message: string) => {
    throw new Error(message);
  };
  const { url, rpc = "" } = await startOneProcess({ config, log, lifecycle, onCrash });
  return {
    url,
    rpc: { sandbox: rpc, organization: rpc, orchestrator: rpc, billing: rpc },
    apiKey,
    databaseUrl: database.url,
    dataDir,
    api: apiOf(url, apiKey),
    addOrganization: (slug) => addOrganization(database.url, url, slug),
    close: async () => {
      await lifecycle.stop(10_000);
      await database.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export function apiOf(url: string, key: string): Api {
  return async (method, path, body, init) => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...init,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...init?.headers,
      },
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
}

/** One more organization, and how to call as it. @param url of the gateway */
export async function addOrganization(databaseUrl: string, url: string, slug: string) {
  const key = generateApiKey();
  const orgId = await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ org_id: string }>(
      `WITH org AS (
         INSERT INTO organization.organizations (id, name, slug) VALUES (gen_random_uuid(), $1, $1) RETURNING id
       )
       INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four)
       SELECT gen_random_uuid(), id, 'test', $2, 'sgt_live_', right($3, 4) FROM org
       RETURNING org_id, sandbox.add_host_volume(org_id, now())`,
      [slug, hashApiKey(key), key],
    );
    const [row] = rows;
    if (!row) throw new Error("no organization was made");
    return row.org_id;
  });
  return { orgId, api: apiOf(url, key) };
}

/** The least that a create needs. */
export const image = (reference = "alpine") => ({ image: { type: "oci", reference } });
