import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { openDatabase } from "../../../prisma/database.ts";
import { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { generateApiKey } from "../../../runtime/api-key.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import { startOrganizationService } from "../../../services/organization/start.ts";
import { createTestDatabase } from "../../support/database.ts";
import { sign } from "./support.ts";

test("the service as the program starts it: the first key, housekeeping, key changes, and the end of it all", async () => {
  const { url: databaseUrl, close } = await createTestDatabase();
  const database = openDatabase(databaseUrl);
  const folder = await mkdtemp(join(tmpdir(), "sandgate-organization-"));
  await database.query(
    "SELECT organization.append_event(gen_random_uuid(), 'thing_made', '{}', '{}', '2001-01-01') AS id",
  );
  const { service, bootstrap, stop } = await startOrganizationService({
    database,
    databaseUrl,
    sign,
    bootstrapApiKey: generateApiKey(),
    keyFile: join(folder, "api-key"),
    eventRetentionDays: 1,
    onError: (error) => expect.fail(String(error)),
  });
  expect(bootstrap).toEqual({ generatedKey: undefined, keyIn: "environment" });
  const types = async () => (await database.prisma.event.findMany()).map((row) => row.eventType);
  await expect.poll(types).toEqual(["api_key_created"]);
  const log = { error: (...args: unknown[]) => expect.fail(JSON.stringify(args)) };
  const transport = createInProcessTransport(
    (router) => router.service(OrganizationService, service),
    { log },
  );
  const news = createClient(OrganizationService, transport).watchKeys({})[Symbol.asyncIterator]();
  expect((await news.next()).value?.event.case).toBe("current");
  await stop();
  await expect(drain(news)).rejects.toMatchObject({ code: Code.Unavailable });
  await database.close();
  await close();
  await rm(folder, { recursive: true });
});

/** Reads what is left. */
async function drain(source: AsyncIterator<unknown>): Promise<void> {
  while (!(await source.next()).done);
}
