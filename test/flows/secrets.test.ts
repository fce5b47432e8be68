import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { generateApiKey } from "../../runtime/api-key.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { type Ended, spawnCli } from "../support/cli.ts";
import { pathHeader } from "../support/files.ts";
import { find, type Place } from "./secrets/needles.ts";
import { readFiles, readTables } from "./secrets/places.ts";
import { SHAPES, type System } from "./secrets/system.ts";

const SLOW = { timeout: 90_000 };
vi.setConfig({ testTimeout: 120_000 });
const planted = (what: string) => `PLANTED${what}${randomBytes(8).toString("hex")}`;

/** What clients hand over to be kept from everybody, and what they send by mistake. */
const CLIENTS = {
  text: planted("text"),
  file: planted("file"),
  append: planted("append"),
  networkSecret: planted("value"),
  secretReference: planted("reference"),
  registryPassword: planted("password"),
  wrongKey: `msb_${planted("key")}`,
  cookie: planted("cookie"),
  refused: planted("refused"),
  malformed: planted("malformed"),
};

/** What files of volumes hold, which is there alone, and was not taken where it was refused. */
const CONTENTS = {
  kept: planted("kept"),
  removed: planted("removed"),
  refused: planted("unwanted"),
};

/** What the operator sets or makes. */
const secretsKey = randomBytes(32);
const OPERATOR: Record<string, string> = {
  serviceToken: planted("token"),
  bootstrapKey: generateApiKey(),
  secretsKeyBytes: secretsKey.toString("latin1"),
  secretsKeyText: secretsKey.toString("base64"),
};

/** What may be read, so that it is known that it would be found. */
const CONTROL = {
  plain: planted("plain"),
  base64: planted("base64"),
  hex: planted("hex"),
  requestId: planted("requestId"),
};
const LABELS = {
  plain: CONTROL.plain,
  base64: Buffer.from(`..${CONTROL.base64}..`).toString("base64"),
  hex: Buffer.from(CONTROL.hex).toString("hex"),
};

interface Call {
  key?: string;
  headers?: Record<string, string>;
  /** Sent as it is. */
  raw?: string;
}

/** A create with a secret in every place that takes one. */
const request = (name: string) => ({
  name,
  labels: LABELS,
  image: { type: "oci", reference: "registry.example.org/tool:1" },
  network: {
    secrets: {
      entries: [
        { env_var: "A", placeholder: "$A", value: CLIENTS.networkSecret },
        {
          env_var: "B",
          placeholder: "$B",
          source: { type: "store", reference: CLIENTS.secretReference },
        },
      ],
    },
  },
  patches: [
    { type: "text", path: "/etc/a", content: CLIENTS.text },
    { type: "file", path: "/etc/b", content: [...Buffer.from(CLIENTS.file)] },
    { type: "append", path: "/etc/c", content: CLIENTS.append },
  ],
  registry: { mode: "inline", username: "somebody", password: CLIENTS.registryPassword },
});

const CREATE = "/v1/sandboxes?start=true&wait_for=running";

describe.each(SHAPES)("what is secret, $shape", ({ begin }) => {
  let system: System;
  /** Everything that clients were told. */
  const answers: Place[] = [];

  beforeAll(async () => {
    for (const name of ["madeKey", "rotatedKey"]) delete OPERATOR[name];
    system = await begin({
      ENGINE: "simulated",
      LOG_LEVEL: "trace",
      EPHEMERAL_LINGER_SECS: "0",
      SERVICE_TOKEN: OPERATOR.serviceToken ?? "",
      BOOTSTRAP_API_KEY: OPERATOR.bootstrapKey ?? "",
      SECRETS_KEY: OPERATOR.secretsKeyText ?? "",
    });
    await system.start();
  });
  afterAll(() => system.close());

  /** Asks the gateway and keeps what it answers. @returns the status and the text of the body */
  async function ask(method: string, path: string, body?: unknown, call: Call = {}) {
    const { key = OPERATOR.bootstrapKey, headers, raw } = call;
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(system.url + path, {
      method,
      ...(sent !== undefined && { body: sent }),
      headers: {
        authorization: `Bearer ${key}`,
        cookie: `session=${CLIENTS.cookie}`,
        ...(sent !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
    });
    const text = await response.text();
    answers.push({ name: `${method} ${path}`, text: JSON.stringify([...response.headers]) + text });
    return { status: response.status, text };
  }

  /** Runs a command, and keeps what it says but for a secret that it was asked for. */
  async function command(...args: string[]): Promise<Ended> {
    const ended = await spawnCli(system.env, ...args, "--json");
    const name = args.join(" ");
    answers.push({ name, text: ended.stderr });
    if (!ended.stdout.includes('"secret"')) answers.push({ name, text: ended.stdout });
    return ended;
  }

  async function execute(sql: string): Promise<void> {
    await withClient(await system.databaseUrl(), (client) => client.query(sql));
  }

  test("requests with secrets in them are served, repeated and refused", async () => {
    const once = { headers: { "idempotency-key": "once" } };
    expect(await ask("POST", CREATE, request("kept"))).toMatchObject({ status: 200 });
    expect(await ask("POST", CREATE, request("repeated"), once)).toMatchObject({ status: 200 });
    expect(await ask("POST", CREATE, request("repeated"), once)).toMatchObject({ status: 200 });
    expect(await ask("POST", CREATE, request("other"), once)).toMatchObject({ status: 422 });
    expect(await ask("POST", CREATE, request("kept"))).toMatchObject({ status: 409 });
    const env = [{ key: "=", value: CLIENTS.refused }];
    const misfit = { ...request("x"), env, patches: CLIENTS.refused };
    expect(await ask("POST", CREATE, misfit)).toMatchObject({ status: 400 });
    const raw = `{"name": "${CLIENTS.malformed}", `;
    expect(await ask("POST", CREATE, undefined, { raw })).toMatchObject({ status: 400 });
    const plain = { headers: { "content-type": "text/plain" } };
    expect(await ask("POST", CREATE, request("y"), plain)).toMatchObject({ status: 415 });
    expect(await ask("PUT", "/v1/sandboxes", request("z"))).toMatchObject({ status: 405 });
    expect(await ask("POST", "/v1/nowhere", request("z"))).toMatchObject({ status: 404 });
    expect(await ask("GET", "/v1/sandboxes", undefined, { key: CLIENTS.wrongKey })).toMatchObject({
      status: 401,
    });
  });

  test("files of volumes are written, repeated, refused, removed and lost with their volume", async () => {
    const host = JSON.parse((await ask("GET", "/v1/volumes/default")).text);
    const made = JSON.parse((await ask("POST", "/v1/volumes", { name: "files" })).text);
    const lost = JSON.parse((await ask("POST", "/v1/volumes", { name: "lost" })).text);
    const put = (id: string, path: string, raw: string) =>
      ask("PUT", `/v1/volumes/${id}/files/content`, undefined, { raw, headers: pathHeader(path) });
    expect(await put(host.id, "kept", CONTENTS.kept)).toMatchObject({ status: 200 });
    for (const { id } of [made, lost])
      expect(await put(id, "removed", CONTENTS.removed)).toMatchObject({ status: 200 });
    expect(await put(made.id, "../out", CONTENTS.refused)).toMatchObject({ status: 400 });
    expect(await put(made.id, "removed/below", CONTENTS.refused)).toMatchObject({ status: 409 });
    const copy = { from: "removed", to: "copied" };
    const once = { headers: { "idempotency-key": "copy" } };
    for (const _ of [1, 2])
      expect(await ask("POST", `/v1/volumes/${made.id}/files/copy`, copy, once)).toMatchObject({
        status: 200,
      });
    for (const path of ["removed", "copied"])
      expect(
        await ask("DELETE", `/v1/volumes/${made.id}/files`, undefined, {
          headers: pathHeader(path),
        }),
      ).toMatchObject({ status: 200 });
    expect(await ask("DELETE", `/v1/volumes/${lost.id}`)).toMatchObject({ status: 200 });
  });

  test("a database that refuses a row, and says which, is logged without it", async () => {
    for (const name of ["sandbox.sandboxes", "organization.api_keys"])
      await execute(`ALTER TABLE ${name} ADD CONSTRAINT broken CHECK (name <> 'broken') NOT VALID`);
    const known = { headers: { "x-request-id": CONTROL.requestId } };
    expect(await ask("POST", CREATE, request("broken"), known)).toMatchObject({ status: 500 });
    const refused = await command("keys", "create", "default", "--name", "broken");
    expect(JSON.parse(refused.stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({
      error: { reason: "INTERNAL" },
    });
  });

  test("keys are made, used, rotated and revoked, in process and over RPC", async () => {
    const server = ["--server", system.rpcUrl];
    const made = JSON.parse((await command("keys", "create", "default", "--name", "one")).stdout);
    const args = ["keys", "rotate", "default", made.id, "--overlap", "1h", ...server];
    const rotated = JSON.parse((await command(...args)).stdout);
    OPERATOR.madeKey = made.secret;
    OPERATOR.rotatedKey = rotated.secret;
    for (const { secret: key } of [made, rotated])
      expect(await ask("GET", "/v1/sandboxes", undefined, { key })).toMatchObject({ status: 200 });
    expect(await command("keys", "revoke", "default", rotated.id, ...server)).toMatchObject({
      code: 0,
    });
    for (const list of ["keys", "events"])
      expect((await command(list, "list", "default")).code).toBe(0);
    const wrongToken = { ...system.env, SERVICE_TOKEN: CLIENTS.wrongKey };
    const refused = await spawnCli(wrongToken, "keys", "list", "default", ...server);
    answers.push({ name: "a wrong token", text: refused.stderr });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    await command("doctor");
  });

  test("sandboxes are renamed, restarted and destroyed; the program is stopped and killed", async () => {
    const { id } = JSON.parse((await ask("GET", "/v1/sandboxes/by-name/kept")).text);
    const change = { name: "renamed" };
    expect(await ask("PATCH", `/v1/sandboxes/${id}`, change)).toMatchObject({ status: 200 });
    await system.stop();
    await system.start();
    const renamed = `/v1/sandboxes/${id}`;
    expect(await ask("POST", `${renamed}/stop?wait_for=stopped`, {})).toMatchObject({
      status: 200,
    });
    await system.kill();
    await system.start();
    const start = async () => (await ask("POST", `${renamed}/start?wait_for=running`, {})).status;
    // It may still be stopping.
    await expect.poll(start, SLOW).toBe(200);
    expect(await ask("DELETE", "/v1/sandboxes/by-name/repeated")).toMatchObject({ status: 200 });
    expect(await ask("GET", "/v1/sandboxes")).toMatchObject({ status: 200 });
    expect(await ask("GET", "/v1/events?limit=100")).toMatchObject({ status: 200 });
  });

  test("what may be read is found in rows, in bytes, in files and in answers", async () => {
    const tables = await readTables(await system.databaseUrl());
    const rows = find(CONTROL, tables);
    for (const what of ["plain", "base64", "hex"])
      expect(rows).toContain(`${what}: sandbox.sandboxes`);
    expect(rows).toContain("plain: organization.idempotency.answer");
    expect(find(CONTROL, answers)).toContain(`plain: POST ${CREATE}`);
    const files = find(CONTROL, await readFiles(system.dataDir));
    expect(files).toContainEqual(expect.stringMatching(/^plain: postgres/));
    expect(files).toContain(`requestId: ${system.gatewayLog}`);
  });

  test("nothing that is secret can be read in any table, file, log or answer", async () => {
    const secrets = { ...CLIENTS, ...OPERATOR };
    expect(find(secrets, await readTables(await system.databaseUrl()))).toEqual([]);
    expect(find(secrets, answers)).toEqual([]);
    // The logs, and the database as it lies on the disk, with what was deleted of it.
    expect(find(secrets, await readFiles(system.dataDir))).toEqual([]);
  });

  test("what files hold can be read in them alone, and not where they were removed", async () => {
    expect(find(CONTENTS, await readTables(await system.databaseUrl()))).toEqual([]);
    expect(find(CONTENTS, answers)).toEqual([]);
    const found = async () => find(CONTENTS, await readFiles(system.dataDir));
    await expect
      .poll(found, SLOW)
      .toEqual([expect.stringMatching(/^kept: volumes\/.*\/files\/kept$/)]);
  });
});
