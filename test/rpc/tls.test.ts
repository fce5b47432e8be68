import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ConnectionOptions, connect } from "node:tls";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { readTls } from "../../runtime/tls/certificate.ts";
import { watchTls } from "../../runtime/tls/watched.ts";
import { type Authority, createAuthority, type Issued } from "../support/certificates.ts";
import { asCaller, startServer, TOKEN } from "./support.ts";

/** Of a call that is tried again while its deadline lasts. */
const NO_ANSWER = /^(Unavailable|DeadlineExceeded)$/;

let ours: Authority;
let others: Authority;
const cleanups: (() => unknown)[] = [];
beforeAll(() => {
  ours = createAuthority();
  others = createAuthority();
});
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});
afterAll(() => {
  ours.remove();
  others.remove();
});

const filesOf = ({ cert, key }: Issued, ca = ours.cert) =>
  ({ prefix: "TLS", cert, key, ca }) as const;

interface Lines {
  lines: unknown[][];
}

async function watch(issued: Issued, ca = ours.cert) {
  const log: Lines = { lines: [] };
  const say = (...line: unknown[]) => void log.lines.push(line);
  const tls = await watchTls(filesOf(issued, ca), { info: say, error: say }, 20);
  cleanups.push(() => tls.stop());
  return { tls, log };
}

async function start(issued = ours.issue("server")) {
  const { tls, log } = await watch(issued);
  const server = await startServer({ tls });
  cleanups.push(server.close);
  return { ...server, url: `https://127.0.0.1:${server.port}`, tlsLog: log };
}

/** What a call comes to. @param client whose certificate; undefined: none is presented */
async function call(baseUrl: string, client?: Issued, { token = "", ca = ours.cert } = {}) {
  const material = await readTls(filesOf(client ?? ours.issue("nobody"), ca));
  const { cert, key, ...anonymous } = material;
  const tls = { current: client ? material : (anonymous as typeof material) };
  const transport = createRemoteTransport({ baseUrl, token: token || undefined, tls });
  cleanups.push(() => transport.close());
  const asked = createClient(SandboxService, transport).getSandbox(
    { key: { key: { case: "name", value: "box" } } },
    { ...asCaller(), timeoutMs: 1_000 },
  );
  return asked.then(
    ({ sandbox }) => sandbox?.name,
    (error) => Code[ConnectError.from(error).code],
  );
}

describe("a port with TLS", () => {
  test("takes a certificate of its authority, or the token, and nobody else", async () => {
    const { url, fake } = await start();
    expect(await call(url, ours.issue("client"))).toBe("box");
    expect(await call(url, undefined, { token: TOKEN })).toBe("box");
    expect(await call(url, others.issue("stranger"), { token: TOKEN })).toBe("box");
    const taken = fake.calls.length;
    expect(await call(url)).toBe("Unauthenticated");
    expect(await call(url, others.issue("stranger"))).toBe("Unauthenticated");
    // Made to prove a server's name, not a caller.
    expect(await call(url, ours.issue("page", { usage: "serverAuth" }))).toBe("Unauthenticated");
    expect(fake.calls).toHaveLength(taken);
  });

  test("is not believed under another name, or by another authority", async () => {
    const elsewhere = await start(ours.issue("elsewhere", { names: "DNS:elsewhere.example.org" }));
    expect(await call(elsewhere.url, ours.issue("client"))).toMatch(NO_ANSWER);
    const stranger = await start(others.issue("stranger"));
    expect(await call(stranger.url, ours.issue("client"))).toMatch(NO_ANSWER);
    expect(await call(`https://localhost:${(await start()).port}`, ours.issue("client"))).toBe(
      "box",
    );
    expect(elsewhere.fake.calls).toEqual([]);
  });

  test("speaks HTTP/1.1 and HTTP/2, and nothing without TLS", async () => {
    const { port } = await start();
    const { cert, key } = await readTls(filesOf(ours.issue("client")));
    const tls = { cert, key, rejectUnauthorized: false };
    const path = "/grpc.health.v1.Health/Check";
    const status = new Promise((resolve, reject) => {
      const options = { ...tls, port, host: "127.0.0.1", path, method: "POST" };
      request({ ...options, headers: { "content-type": "application/json" } }, (response) => {
        resolve(response.resume().statusCode);
      })
        .on("error", reject)
        .end("{}");
    });
    expect(await status).toBe(200);
    expect(await call(`http://127.0.0.1:${port}`, undefined, { token: TOKEN })).toMatch(NO_ANSWER);
    const plain = connectPlain(port, "127.0.0.1", () =>
      plain.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"),
    );
    let heard = "";
    plain.on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
    await new Promise((closed) => plain.on("error", () => {}).once("close", closed));
    expect(heard).not.toContain("HTTP");
  });

  test("is not believed either where the process is told to believe everybody", async () => {
    const stranger = await start(others.issue("stranger"));
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    cleanups.push(() => vi.unstubAllEnvs());
    expect(await call(stranger.url, ours.issue("client"), { token: TOKEN })).toMatch(NO_ANSWER);
    expect(stranger.fake.calls).toEqual([]);
  });

  /** Asks by HTTP/1.1, on a session that goes on where one is given. */
  function ask(port: number, options: ConnectionOptions) {
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: string;
      isReused: boolean;
      session: Buffer | undefined;
    }>();
    let heard = "";
    let isReused = false;
    let session: Buffer | undefined;
    const body = `POST /${SandboxService.typeName}/GetSandbox HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
    const socket = connect(
      { host: "127.0.0.1", port, rejectUnauthorized: false, ...options },
      () => {
        isReused = socket.isSessionReused();
        socket.write(`${body}content-length: 2\r\nconnection: close\r\n\r\n{}`);
      },
    )
      .on("session", (made) => {
        session = made;
      })
      .on("data", (chunk) => {
        heard += chunk.toString("latin1");
      })
      .on("error", reject)
      .on("close", () => resolve({ status: heard.split(" ")[1] ?? "", isReused, session }));
    return promise;
  }

  test.each(["TLSv1.3", "TLSv1.2"] as const)(
    "%s: a session that is resumed is trusted as it was",
    async (version) => {
      const files = join(mkdtempSync(join(tmpdir(), "sandgate-tls-")), "ca");
      cleanups.push(() => rmSync(dirname(files), { recursive: true }));
      copyFileSync(ours.cert, files);
      const { tls } = await watch(ours.issue("server"), files);
      const { port, close } = await startServer({ tls });
      cleanups.push(close);
      const only = { minVersion: version, maxVersion: version };
      const asWho = ({ cert, key }: Issued) => ({
        ...only,
        cert: readFileSync(cert),
        key: readFileSync(key),
      });
      const twice = async (options: ConnectionOptions) => {
        const { session } = await ask(port, options);
        const { status, isReused } = await ask(port, { ...options, session });
        return { status, isReused };
      };
      expect(await twice(only)).toEqual({ status: "401", isReused: true });
      expect(await twice(asWho(others.issue("stranger")))).toEqual({
        status: "401",
        isReused: true,
      });
      const client = asWho(ours.issue("client"));
      expect(await twice(client)).toEqual({ status: "400", isReused: true });

      // Of an authority that is taken away no session goes on.
      const { session } = await ask(port, client);
      copyFileSync(others.cert, files);
      await expect.poll(async () => (await ask(port, client)).status).toBe("401");
      for (const options of [client, only])
        expect(await ask(port, { ...options, session })).toMatchObject({
          status: "401",
          isReused: false,
        });
    },
  );

  test("refuses TLS 1.1", async () => {
    const { port } = await start();
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false } as const;
    const refused = new Promise((resolve) => {
      const old = { ...options, minVersion: "TLSv1", maxVersion: "TLSv1.1" } as const;
      connect({ ...old, ciphers: "DEFAULT@SECLEVEL=0" }, () => resolve("taken")).on(
        "error",
        ({ code }: NodeJS.ErrnoException) => resolve(code),
      );
    });
    expect(await refused).toMatch(/PROTOCOL_VERSION|VERSION/);
  });
});

describe("files that change", () => {
  /** Files of their own, so that they can be overwritten. */
  function movable(issued: Issued): Issued & { become(next: Partial<Issued>): void } {
    const folder = mkdtempSync(join(tmpdir(), "sandgate-tls-"));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const own = { cert: join(folder, "cert"), key: join(folder, "key") };
    const become = ({ cert, key }: Partial<Issued>) => {
      if (cert) copyFileSync(cert, own.cert);
      if (key) copyFileSync(key, own.key);
    };
    become(issued);
    return { ...own, become };
  }

  const presented = (port: number) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      }).on("error", reject);
    });

  test("are taken over by new connections, on both sides; old ones go on", async () => {
    const files = movable(ours.issue("first"));
    const { port, url } = await start(files);
    const session: ClientHttp2Session = connectHttp2(url, { rejectUnauthorized: false });
    cleanups.push(() => session.destroy());
    await new Promise((connected) => session.once("connect", connected));
    expect(await presented(port)).toBe("first");
    files.become(ours.issue("second"));
    await expect.poll(() => presented(port)).toBe("second");
    expect(session.closed).toBe(false);
    await new Promise((resolve, reject) =>
      session.ping((error) => (error ? reject(error) : resolve(0))),
    );

    // A client whose certificate was of nobody here, until its files changed.
    const own = movable(others.issue("client"));
    const { tls } = await watch(own);
    const attempt = async () => {
      const transport = createRemoteTransport({ baseUrl: url, token: undefined, tls });
      cleanups.push(() => transport.close());
      const call = createClient(SandboxService, transport).getSandbox(
        { key: { key: { case: "name", value: "box" } } },
        asCaller(),
      );
      return call.then(
        () => "taken",
        (error) => Code[ConnectError.from(error).code],
      );
    };
    expect(await attempt()).toBe("Unauthenticated");
    own.become(ours.issue("client"));
    await expect.poll(attempt).toBe("taken");
  });

  test("an authority that is taken away is not trusted any more", async () => {
    const authority = movable({ cert: ours.cert, key: ours.key });
    const { tls } = await watch(ours.issue("server"), authority.cert);
    const server = await startServer({ tls });
    cleanups.push(server.close);
    const url = `https://127.0.0.1:${server.port}`;
    const client = ours.issue("client");
    expect(await call(url, client)).toBe("box");
    authority.become({ cert: others.cert });
    await expect.poll(() => call(url, client)).toBe("Unauthenticated");
  });

  test("half of a new pair, or none, leaves the old one in use and is said", async () => {
    const files = movable(ours.issue("first"));
    const { port, tlsLog } = await start(files);
    const next = ours.issue("next");
    files.become({ cert: next.cert });
    await expect.poll(() => JSON.stringify(tlsLog.lines)).toContain("cannot be used");
    expect(await presented(port)).toBe("first");
    writeFileSync(files.cert, "-----BEGIN CERT");
    await expect.poll(() => tlsLog.lines.length).toBeGreaterThan(1);
    expect(await presented(port)).toBe("first");
    files.become(next);
    await expect.poll(() => presented(port)).toBe("next");
  });
});

describe("files that cannot be used", () => {
  const refusal = (files: Partial<ReturnType<typeof filesOf>>, now?: number) =>
    readTls({ ...filesOf(ours.issue("good")), ...files }, now).catch(({ message }) => message);
  const day = 86_400_000;

  test("are named with their variable", async () => {
    const other = ours.issue("other");
    const folder = mkdtempSync(join(tmpdir(), "sandgate-tls-"));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const nonsense = join(folder, "nonsense");
    writeFileSync(nonsense, "hunter2");
    expect(await refusal({})).toMatchObject({ minVersion: "TLSv1.2" });
    expect(await refusal({ cert: "/no/such" })).toBe(
      "The file /no/such (TLS_CERT) cannot be read: no such file or directory",
    );
    expect(await refusal({ cert: nonsense })).toMatch(/nonsense \(TLS_CERT\) holds no certificate/);
    expect(await refusal({ key: nonsense })).toMatch(/nonsense \(TLS_KEY\) holds no private key/);
    expect(await refusal({ ca: nonsense })).toMatch(/nonsense \(TLS_CA\) holds no certificate/);
    expect(await refusal({ key: other.key })).toMatch(/\(TLS_KEY\) is not that of the certificate/);
    expect(await refusal({}, Date.now() + 31 * day)).toMatch(/\(TLS_CERT\) expired at 20/);
    expect(await refusal({}, Date.now() - day)).toMatch(/\(TLS_CERT\) is not valid before 20/);
    for (const files of [{ cert: nonsense }, { key: nonsense }, { ca: nonsense }])
      expect(await refusal(files)).not.toContain("hunter2");
  });
});
