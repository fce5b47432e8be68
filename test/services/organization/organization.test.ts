import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createContextValues } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { generateApiKey, hashApiKey, isApiKey } from "../../../runtime/api-key.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import { bootstrap } from "../../../services/organization/bootstrap.ts";
import type { OrganizationContext } from "../../../services/organization/context.ts";
import { createOrganizationService } from "../../../services/organization/service.ts";
import { createStore } from "../../../services/organization/store.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let testDatabase: TestDatabase;
let database: Database;
let ctx: OrganizationContext;
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

describe("the service", () => {
  const client = () =>
    createClient(
      OrganizationService,
      createInProcessTransport(
        (router) => router.service(OrganizationService, createOrganizationService(ctx)),
        { log: { error: (...args: unknown[]) => expect.fail(String(args)) }, freeze: true },
      ),
    );
  const authenticate = (key: string) => client().authenticateKey({ keySha256: hashApiKey(key) });
  const reasonOf = (work: Promise<unknown>) =>
    work.then(
      () => "no error",
      (error: unknown) => fromConnectError(error)?.reason,
    );
  const callAs = (orgId: string) => {
    const actor = { kind: "system", code: "test", label: "Test" } as const;
    const contextValues = createContextValues().set(callerKey, { orgId, actor, requestId: "r" });
    return client().getOrganization({}, { contextValues });
  };

  test("knows whose key it is", async () => {
    const { generatedKey = "" } = await start();
    const organization = await database.prisma.organization.findFirstOrThrow();
    const holder = await authenticate(generatedKey);
    expect(holder).toMatchObject({
      orgId: organization.id,
      apiKeyName: "Bootstrap key",
      orgSuspended: false,
    });
    expect(holder.expiresAt).toBeUndefined();
  });

  test("refuses an unknown, a revoked and an expired key", async () => {
    const { generatedKey = "" } = await start();
    expect(await reasonOf(authenticate(generateApiKey()))).toBe("INVALID_API_KEY");
    const past = new Date(Date.now() - 1_000);
    await database.prisma.apiKey.updateMany({ data: { expiresAt: past } });
    expect(await reasonOf(authenticate(generatedKey))).toBe("INVALID_API_KEY");
    await database.prisma.apiKey.updateMany({ data: { expiresAt: null, revokedAt: past } });
    expect(await reasonOf(authenticate(generatedKey))).toBe("INVALID_API_KEY");
  });

  test("tells when a key expires and that its organization is suspended", async () => {
    const { generatedKey = "" } = await start();
    const expiresAt = new Date("2100-01-01T00:00:00Z");
    await database.prisma.apiKey.updateMany({ data: { expiresAt } });
    await database.prisma.organization.updateMany({ data: { suspendedAt: new Date() } });
    const holder = await authenticate(generatedKey);
    expect(Number(holder.expiresAt?.seconds)).toBe(expiresAt.getTime() / 1_000);
    expect(holder.orgSuspended).toBe(true);
  });

  test("answers with the caller's organization and no other", async () => {
    await start();
    const { id } = await database.prisma.organization.findFirstOrThrow();
    const { organization } = await callAs(id);
    expect(organization).toMatchObject({ id, name: "Default", slug: "default" });
    expect(await reasonOf(callAs(randomUUID()))).toBe("ORG_NOT_FOUND");
  });
});
