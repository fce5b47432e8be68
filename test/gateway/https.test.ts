import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TLSSocket } from "node:tls";
import pino from "pino";
import { afterAll, afterEach, expect, test } from "vitest";
import { askGateway } from "../../app/doctor/gateway.ts";
import { startGateway } from "../../app/gateway.ts";
import { urlOf } from "../../app/listen.ts";
import { readConfig } from "../../runtime/env.ts";
import { Lifecycle } from "../../runtime/lifecycle.ts";
import { createAuthority, type Issued } from "../support/certificates.ts";
import { freePort } from "../support/ports.ts";
import { FakeServices } from "./support/fake-services.ts";
import { UNLIMITED } from "./support/gateway.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

afterAll(() => {
  authority.remove();
  rmSync(folder, { recursive: true });
});

const authority = createAuthority();
const folder = mkdtempSync(join(tmpdir(), "sandgate-https-"));
const files = { cert: join(folder, "cert"), key: join(folder, "key") };
const become = ({ cert, key }: Issued) => {
  copyFileSync(key, files.key);
  copyFileSync(cert, files.cert);
};

async function start(certificate: Issued) {
  become(certificate);
  const port = await freePort();
  const { gateway } = readConfig({ HTTPS_CERT: files.cert, HTTPS_KEY: files.key, PORT: `${port}` });
  const log = pino({ level: "silent" });
  const lifecycle = new Lifecycle(log);
  cleanups.push(() => lifecycle.stop(5_000));
  const config = { ...gateway, ...UNLIMITED };
  const readiness = async () => ({ ready: true, checks: {} });
  const options = { clients: new FakeServices().clients(), config, log, readiness };
  return { url: await startGateway(options, gateway, lifecycle), port };
}

const ca = () => readFileSync(authority.cert);

function get(url: string) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number | undefined;
    hsts: string | undefined;
    name: string;
  }>();
  request(`${url}/healthz`, { ca: ca(), agent: false }, (response) => {
    const { socket, statusCode: status, headers } = response.resume();
    const peer = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.subject : undefined;
    resolve({ status, hsts: headers["strict-transport-security"], name: peer ?? "" });
  })
    .on("error", reject)
    .end();
  return promise;
}

test("the public port speaks HTTPS alone, and takes a new certificate over", async () => {
  const { url, port } = await start(authority.issue("first"));
  expect(url).toBe(`https://127.0.0.1:${port}`);
  expect(await get(url)).toEqual({ status: 200, hsts: "max-age=31536000", name: "CN=first" });
  const plain = connectPlain(port, "127.0.0.1", () =>
    plain.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"),
  );
  let heard = "";
  plain.on("data", (chunk) => {
    heard += chunk.toString("latin1");
  });
  await new Promise((closed) => plain.on("error", () => {}).once("close", closed));
  expect(heard).not.toContain("ok");
  become(authority.issue("second"));
  await expect.poll(async () => (await get(url)).name, { timeout: 20_000 }).toBe("CN=second");
}, 40_000);

test("the address is one that the certificate is good for", () => {
  const tls = (names: string) => ({
    cert: readFileSync(authority.issue("n", { names }).cert, "utf8"),
  });
  expect(urlOf("0.0.0.0", 1, tls("IP:127.0.0.1"))).toBe("https://127.0.0.1:1");
  expect(urlOf("0.0.0.0", 1, tls("DNS:*.a.example,DNS:b.example"))).toBe("https://b.example:1");
  expect(urlOf("api.example", 1, tls("DNS:*.example"))).toBe("https://api.example:1");
  expect(urlOf("::", 1)).toBe("http://[::1]:1");
});

test("doctor looks at the port, its certificate, and when that ends", async () => {
  const { port } = await start(authority.issue("gateway"));
  const look = (cert: string, key: string) =>
    askGateway(readConfig({ PORT: `${port}`, HTTPS_CERT: cert, HTTPS_KEY: key }));
  expect(await look(files.cert, files.key)).toMatchObject({ status: "ok" });
  const other = authority.issue("other");
  expect((await look(other.cert, other.key)).seen).toMatch(
    /has another certificate than HTTPS_CERT/,
  );
  expect((await look("/no/such", files.key)).seen).toMatch(
    /\/no\/such \(HTTPS_CERT\) cannot be read/,
  );
  expect(await askGateway(readConfig({ PORT: `${port}` }))).toMatchObject({ status: "fail" });
});
