import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Authority, createAuthority, type Issued } from "../support/certificates.ts";
import { callCli } from "../support/cli.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { apiOf, image } from "../support/program.ts";

vi.setConfig({ testTimeout: 200_000, hookTimeout: 60_000 });

let database: TestDatabase;
let folder: string;
let authority: Authority;
let deployment: Deployment;

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "sandgate-tls-roles-"));
  authority = createAuthority();
  const tls = { ...authority.issue("role"), ca: authority.cert };
  deployment = await createDeployment({ databaseUrl: database.url, dataDir: folder, tls });
  for (const child of deployment.all) child.start();
});
afterAll(async () => {
  await deployment.close();
  await database.close();
  authority.remove();
  await rm(folder, { recursive: true, force: true });
});

/** A command from a folder that holds no service token. */
const list = (url: string, client?: Issued) =>
  callCli(
    {
      DATA_DIR: join(folder, "elsewhere"),
      ...(client && { TLS_CERT: client.cert, TLS_KEY: client.key, TLS_CA: authority.cert }),
    },
    ...["organizations", "list", "--json", "--server", url],
  );

test("roles call each other by TLS: a life through all of them", async () => {
  await expect.poll(deployment.isReady, { timeout: 180_000 }).toBe(true);
  const api = apiOf(deployment.url, deployment.apiKey);
  const made = await api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=30", {
    ...image(),
    name: "life",
  });
  expect(made).toMatchObject({ status: 200, body: { status: "running" } });
  expect((await api("DELETE", "/v1/sandboxes/by-name/life")).status).toBe(200);
});

test("a command without a token is let in by its certificate alone", async () => {
  const { organizationUrl } = deployment;
  const listed = await list(organizationUrl, authority.issue("operator"));
  expect(listed).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(listed.stdout).data).toMatchObject([{ slug: "default" }]);
  const others = createAuthority();
  const refused = await list(organizationUrl, others.issue("operator"));
  others.remove();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("SERVICE_TOKEN_REFUSED");
  const without = await list(organizationUrl);
  expect(without.stderr).toContain("There is no service token");
});

test("a URL without TLS is refused where a certificate is set", async () => {
  const plain = deployment.organizationUrl.replace("https:", "http:");
  const refused = await list(plain, authority.issue("operator"));
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("--server has to begin with https://");
});
