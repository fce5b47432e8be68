import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { generateApiKey, hashApiKey, isApiKey } from "../../../runtime/api-key.ts";
import { bootstrap } from "../../../services/organization/bootstrap.ts";
import type { OrganizationContext } from "../../../services/organization/context.ts";
import { createStore } from "../../../services/organization/store.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let testDatabase: TestDatabase;
let database: Database;
let ctx: Pick<OrganizationContext, "store">;
let folder: string;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase(testDatabase.url);
  ctx = { store: createStore(database) };
  folder = await mkdtemp(join(tmpdir(), "sandgate-organization-"));
});

afterEach(async () => {
  await database.close();
  await testDatabase.close();
  await rm(folder, { recursive: true });
});

const keyFile = () => join(folder, "api-key");
const start = (bootstrapApiKey?: string) => bootstrap(ctx, { bootstrapApiKey, keyFile: keyFile() });

describe("bootstrap", () => {
  test("makes the default organization with a key that is shown and kept", async () => {
    const { generatedKey = "" } = await start();
    expect(isApiKey(generatedKey)).toBe(true);
    expect(await readFile(keyFile(), "utf8")).toBe(`${generatedKey}\n`);
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600);
    const [organization] = await database.prisma.organization.findMany({
      include: { apiKeys: true },
    });
    expect(organization).toMatchObject({
      name: "Default",
      slug: "default",
      apiKeys: [{ prefix: "sgt_live_", lastFour: generatedKey.slice(-4), expiresAt: null }],
    });
  });

  test("makes its host volume with it, once", async () => {
    await start();
    await start();
    const rows = await database.query(
      `SELECT v.kind, v.created_at = o.created_at AS together FROM sandbox.volumes v
       JOIN organization.organizations o ON o.id = v.org_id`,
    );
    expect(rows).toEqual([{ kind: "host", together: true }]);
  });

  test("writes one audit event, without the key", async () => {
    const { generatedKey = "" } = await start();
    const events = await database.prisma.event.findMany();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      category: "api_key",
      eventType: "api_key_created",
      actor: { kind: "system", code: "bootstrap", label: "First start" },
      payload: { api_key_id: expect.any(String), last_four: generatedKey.slice(-4) },
    });
    expect(JSON.stringify(events)).not.toContain(generatedKey);
  });

  test("does nothing the second time, and shows nothing", async () => {
    await start();
    expect(await start()).toEqual({ generatedKey: undefined, keyIn: "file" });
    expect(await database.prisma.apiKey.count()).toBe(1);
  });

  test("takes the operator's key, of any prefix, and writes it nowhere", async () => {
    const key = "msb_0123456789abcdef";
    expect(await start(key)).toEqual({ generatedKey: undefined, keyIn: "environment" });
    expect(await ctx.store.findKeyHolder(hashApiKey(key))).toBeDefined();
    expect(existsSync(keyFile())).toBe(false);
    expect(await start(key)).toMatchObject({ keyIn: "environment" });
    expect(await start()).toMatchObject({ keyIn: "elsewhere" });
  });

  test("says that a key set later is not used", async () => {
    await start();
    expect(await start(generateApiKey())).toMatchObject({ keyIn: "file" });
    expect(await database.prisma.apiKey.count()).toBe(1);
  });

  test("goes on with the key of a start that was cut off", async () => {
    const key = generateApiKey();
    await writeFile(keyFile(), `${key}\n`, { mode: 0o600 });
    expect(await start()).toMatchObject({ generatedKey: key });
  });

  test("refuses a key file with something else in it", async () => {
    await writeFile(keyFile(), "hello\n");
    await expect(start()).rejects.toThrow(`The file ${keyFile()} holds no API key: remove it`);
  });

  test("five processes with one folder make one organization and agree on its key", async () => {
    await Promise.all(Array.from({ length: 5 }, () => start()));
    expect(await database.prisma.organization.count()).toBe(1);
    const kept = (await readFile(keyFile(), "utf8")).trim();
    expect(await ctx.store.findKeyHolder(hashApiKey(kept))).toBeDefined();
  });

  test("of processes with folders of their own, only the one that was first keeps a key", async () => {
    const files = Array.from({ length: 5 }, (_, i) => join(folder, `key-${i}`));
    await Promise.all(
      files.map((file) => bootstrap(ctx, { bootstrapApiKey: undefined, keyFile: file })),
    );
    expect(await database.prisma.apiKey.count()).toBe(1);
    expect(files.filter((file) => existsSync(file))).toHaveLength(1);
  });
});
