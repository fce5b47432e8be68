import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LogSource } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { KEY, KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const PATH = "/v1/sandboxes/019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44/logs";

let gateway: Gateway;
let more: PromiseWithResolvers<void>;
beforeEach(async () => {
  gateway = await openGateway();
  await gateway.app.listen({ host: "127.0.0.1", port: 0 });
  more = Promise.withResolvers();
  gateway.services.orchestrator.readLogs = async function* (_request, { signal }) {
    yield { event: { case: "opened", value: {} } };
    await Promise.race([more.promise, once(signal, "abort")]);
    const entry = { source: LogSource.STDOUT, text: "more", time: timestampFromMs(0) };
    if (!signal.aborted) yield { event: { case: "entry", value: entry } };
    if (!signal.aborted) await once(signal, "abort");
  };
});
afterEach(() => gateway.close());

/** Follows the logs. */
async function follow(): Promise<{ body: () => string; ended: Promise<unknown> }> {
  const { port } = gateway.app.server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${KEY}` };
  const request = httpRequest({ port, host: "127.0.0.1", path: PATH, headers }).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  let text = "";
  response.on("data", (chunk) => {
    text += chunk;
  });
  return { body: () => text, ended: once(response, "end") };
}

/** What the service says of the key from now on. */
function answer(said: () => Promise<object>): void {
  gateway.services.organization.authenticateKey = said;
}

const holder = { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" };

describe("a stream is broken off when its key", () => {
  test("is revoked, as soon as that is told", async () => {
    await gateway.services.keyWatch.current();
    const { body, ended } = await follow();
    answer(async () => {
      throw new ServiceError("INVALID_API_KEY", "revoked");
    });
    await gateway.services.keyWatch.changed(ORG_ID, KEY_ID);
    await ended;
    expect(body()).toBe("");
  });

  test("is revoked where nobody tells", async () => {
    await gateway.services.keyWatch.breakOff();
    const { ended } = await follow();
    answer(async () => {
      throw new ServiceError("INVALID_API_KEY", "revoked");
    });
    await ended;
  });

  test("is one of an organization that is suspended", async () => {
    await gateway.services.keyWatch.current();
    const { ended } = await follow();
    answer(async () => ({ ...holder, orgSuspended: true }));
    await gateway.services.keyWatch.changed(ORG_ID);
    await ended;
  });

  test("expires", async () => {
    const expiresAt = timestampFromMs(Date.now() + 2_000);
    answer(async () => ({ ...holder, expiresAt }));
    const { ended } = await follow();
    await ended;
  });
});

test("a stream goes on where nobody can be asked", async () => {
  await gateway.services.keyWatch.breakOff();
  const { body } = await follow();
  let asked = 0;
  answer(async () => {
    asked += 1;
    throw new ConnectError("away", Code.Unavailable);
  });
  await expect.poll(() => asked, { timeout: 10_000 }).toBeGreaterThan(2);
  more.resolve();
  await expect.poll(body).toContain('"text":"more"');
});
