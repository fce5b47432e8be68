import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileKind } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { type Reason, ServiceError } from "../../runtime/errors.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";
import { FILES, fileMessage, pathHeader, VOLUME_ID } from "./support/volumes.ts";

const PUBLIC = {
  path: "/data/notes.txt",
  kind: "file",
  size: 11,
  mode: 0o640,
  uid: 1000,
  gid: 100,
  readonly: false,
  accessed_at: "2026-11-21T08:20:11.730Z",
  modified_at: "2026-11-21T08:20:11.730Z",
  created_at: null,
};

let gateway: Gateway;
/** What the services were asked, without what every message has. */
let asked: object[];
beforeEach(async () => {
  gateway = await openGateway();
  asked = [];
});
afterEach(() => gateway.close());

const note = ({ $typeName: _, ...request }: { $typeName: string }) => void asked.push(request);

const refusal = (reason: Reason, message = "") => new ServiceError(reason, message);

describe("a path in a header", () => {
  beforeEach(() => {
    gateway.services.files.statFile = async (request) => {
      note(request);
      return { info: fileMessage() };
    };
  });
  const stat = (headers: Record<string, string>) =>
    gateway.call("GET", `${FILES}/stat`, undefined, { headers });

  test("is unpadded base64url of UTF-8", async () => {
    const paths = ["a", "/data/grüße ⏳", "..", "a\nb", "\ufeffbom", "?>~", " ", "x".repeat(4096)];
    for (const path of paths) expect((await stat(pathHeader(path))).status).toBe(200);
    expect(asked).toEqual(paths.map((path) => ({ volumeId: VOLUME_ID, path })));
  });

  test("is the root where it is empty, or is not there", async () => {
    await stat({});
    await stat({ "x-msb-file-path": "" });
    expect(asked).toEqual([
      { volumeId: VOLUME_ID, path: "" },
      { volumeId: VOLUME_ID, path: "" },
    ]);
  });

  test("is refused in any other form", async () => {
    const encoded = (bytes: number[]) => Buffer.from(bytes).toString("base64url");
    for (const header of [
      "YQ==",
      "YQ=",
      "Y",
      "YR",
      "Y Q",
      "a+/a",
      "/data",
      "..",
      "YQ, Yg",
      "ü",
      encoded([0xff]),
      encoded([0xc0, 0x80]),
      encoded([0xed, 0xa0, 0x80]),
      encoded([0x61, 0]),
    ])
      expect(faultPaths(await stat({ "x-msb-file-path": header }))).toEqual([
        "headers.x-msb-file-path",
      ]);
    expect(asked).toEqual([]);
  });

  test("has to be there where a file is meant", async () => {
    for (const [method, path] of [
      ["GET", `${FILES}/content`],
      ["PUT", `${FILES}/content`],
      ["DELETE", FILES],
    ] as const)
      expect(faultPaths(await gateway.call(method, path))).toEqual(["headers.x-msb-file-path"]);
  });

  test("is told with every other fault", async () => {
    const headers = { "x-msb-file-path": "=", "x-msb-file-recursive": "True" };
    const answer = await gateway.call("DELETE", "/v1/volumes/x/files", undefined, { headers });
    expect(faultPaths(answer)).toEqual([
      "id",
      "headers.x-msb-file-path",
      "headers.x-msb-file-recursive",
    ]);
  });
});

describe("what a file is", () => {
  const stat = () => gateway.call("GET", `${FILES}/stat`);

  test("is told in public words", async () => {
    gateway.services.files.statFile = async () => ({ info: fileMessage() });
    expect(await stat()).toMatchObject({ status: 200, body: { metadata: PUBLIC } });
    const createdAt = timestampFromMs(1);
    const info = fileMessage({
      kind: FileKind.DIRECTORY,
      readonly: true,
      size: 2n ** 40n,
      createdAt,
    });
    gateway.services.files.statFile = async () => ({ info });
    expect((await stat()).body.metadata).toEqual({
      ...PUBLIC,
      kind: "directory",
      readonly: true,
      size: 2 ** 40,
      created_at: "1970-01-01T00:00:00.001Z",
    });
  });

  test("has times that can be said, whatever it was given", async () => {
    const accessedAt = { seconds: 2n ** 62n, nanos: 0 };
    const modifiedAt = { seconds: -(2n ** 62n), nanos: 0 };
    gateway.services.files.statFile = async () => ({
      info: fileMessage({ accessedAt, modifiedAt }),
    });
    expect((await stat()).body.metadata).toMatchObject({
      accessed_at: "9999-12-31T23:59:59.999Z",
      modified_at: "0001-01-01T00:00:00.000Z",
      created_at: null,
    });
  });

  test("is asked for without a 404 where it is missing", async () => {
    const exists = async () => (await gateway.call("GET", `${FILES}/exists`)).body;
    gateway.services.files.statFile = async () => ({ info: fileMessage() });
    expect(await exists()).toEqual({ exists: true });
    const answers = [
      ["VOLUME_FILE_NOT_FOUND", { exists: false }],
      ["VOLUME_NOT_FOUND", { error: { code: "volume_not_found" } }],
      ["INVALID_VOLUME_PATH", { error: { code: "invalid_volume_path", message: "it leaves" } }],
    ] as const;
    for (const [reason, answer] of answers) {
      gateway.services.files.statFile = async () => {
        throw refusal(reason, "it leaves");
      };
      expect(await exists()).toMatchObject(answer);
    }
  });
});

describe("a directory's list", () => {
  const list = (headers = {}) => gateway.call("GET", FILES, undefined, { headers });

  test("is one list, however it comes", async () => {
    const named = (path: string) => fileMessage({ path });
    gateway.services.files.listFiles = async function* (request) {
      note(request);
      yield { entries: [named("/a"), named("/b")] };
      yield {};
      yield { entries: [named('/ü\n"')] };
    };
    const { status, body, headers } = await list(pathHeader("/"));
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
    const paths = ["/a", "/b", '/ü\n"'];
    expect(body).toEqual({ entries: paths.map((path) => ({ ...PUBLIC, path })) });
    expect(asked).toEqual([{ volumeId: VOLUME_ID, path: "/" }]);
  });

  test("may be empty", async () => {
    for (const messages of [[], [{}], [{}, {}]]) {
      gateway.services.files.listFiles = async function* () {
        yield* messages;
      };
      expect((await list()).body).toEqual({ entries: [] });
    }
  });

  test("answers HEAD with its headers", async () => {
    let ended = false;
    gateway.services.files.listFiles = async function* () {
      try {
        for (;;) yield { entries: [fileMessage()] };
      } finally {
        ended = true;
      }
    };
    const { status, headers } = await gateway.call("HEAD", FILES);
    expect([status, headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
    await expect.poll(() => ended).toBe(true);
  });

  test("is refused as ever where nothing was sent", async () => {
    const cases = [
      [refusal("VOLUME_NOT_FOUND"), 404, "volume_not_found"],
      [refusal("VOLUME_FILE_NOT_FOUND"), 404, "volume_file_not_found"],
      [refusal("FILE_CONFLICT", "'/a' is a file"), 409, "invalid_request"],
      [refusal("INVALID_VOLUME_PATH", "'..' leaves the volume"), 400, "invalid_volume_path"],
      [refusal("INVALID_SANDBOX_CONFIG", "no files here"), 400, "invalid_sandbox_config"],
      [refusal("SERVICE_UNAVAILABLE"), 503, "service_unavailable"],
    ] as const;
    for (const [error, status, code] of cases) {
      // biome-ignore lint/correctness/useYield: it fails before it yields
      gateway.services.files.listFiles = async function* () {
        throw error;
      };
      expect(await list()).toMatchObject({ status, body: { error: { code } } });
    }
  });
});

describe("a change of files", () => {
  const changes = [
    ["DELETE", FILES, undefined, "removeFile", "file removed"],
    ["POST", `${FILES}/mkdir`, { path: "/a" }, "makeDirectory", "directory made"],
    ["POST", `${FILES}/copy`, { from: "/a", to: "b" }, "copyFile", "file copied"],
    ["POST", `${FILES}/rename`, { from: "/a", to: "b" }, "renameFile", "file renamed"],
  ] as const;
  const headers = pathHeader("/a");

  test.each(changes)("%s %s is passed on", async (method, path, body, rpc, message) => {
    gateway.services.files[rpc] = async (request: { $typeName: string }) => {
      note(request);
      return {};
    };
    const answer = await gateway.call(method, path, body && { ...body, force: true }, { headers });
    expect(answer).toMatchObject({ status: 200, body: { message } });
    expect(answer.headers["idempotent-replayed"]).toBeUndefined();
    expect(answer.headers["x-ignored-fields"]).toBe(body && "force");
    expect(asked).toEqual([{ volumeId: VOLUME_ID, ...(body ?? { path: "/a", recursive: false }) }]);
  });

  test.each(changes)("%s %s carries its key", async (method, path, body, rpc) => {
    const hashes: string[] = [];
    gateway.services.files[rpc] = async (_request: unknown, context: HandlerContext) => {
      const { idempotency } = requireCaller(context);
      hashes.push(Buffer.from(idempotency?.requestSha256 ?? []).toString("hex"));
      return { replayed: idempotency?.key === "k-1" };
    };
    const withKey = { headers: { ...headers, "idempotency-key": "k-1" } };
    const answer = await gateway.call(method, path, body, withKey);
    expect(answer.headers["idempotent-replayed"]).toBe("true");
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  test("is another one where its headers name another path", async () => {
    const hashes = new Set<string>();
    gateway.services.files.removeFile = async (_request, context) => {
      const { idempotency } = requireCaller(context);
      hashes.add(Buffer.from(idempotency?.requestSha256 ?? []).toString("hex"));
      return {};
    };
    for (const more of [
      pathHeader("/a"),
      pathHeader("/b"),
      { ...pathHeader("/a"), "x-msb-file-recursive": "true" },
      pathHeader("/a"),
    ])
      await gateway.call("DELETE", FILES, undefined, {
        headers: { ...more, "idempotency-key": "k" },
      });
    expect(hashes.size).toBe(3);
  });

  test("removes a tree where it is told to", async () => {
    gateway.services.files.removeFile = async (request) => {
      note(request);
      return {};
    };
    for (const recursive of ["true", "false"])
      await gateway.call("DELETE", FILES, undefined, {
        headers: { ...headers, "x-msb-file-recursive": recursive },
      });
    expect(asked).toMatchObject([{ recursive: true }, { recursive: false }]);
  });

  test("names what is wrong with its body", async () => {
    const mkdir = (body: unknown) => gateway.call("POST", `${FILES}/mkdir`, body);
    for (const body of [{}, { path: null }, { path: 1 }, { path: "a\0" }, { path: "\ud800" }])
      expect(faultPaths(await mkdir(body))).toEqual(["path"]);
    expect(faultPaths(await gateway.call("POST", `${FILES}/copy`, { to: 1 }))).toEqual([
      "from",
      "to",
    ]);
  });

  test("says what is in the way", async () => {
    gateway.services.files.renameFile = async () => {
      throw refusal("FILE_CONFLICT", "'/b' is a directory");
    };
    expect(await gateway.call("POST", `${FILES}/rename`, { from: "/a", to: "/b" })).toMatchObject({
      status: 409,
      body: { error: { code: "invalid_request", message: "'/b' is a directory", details: null } },
    });
  });
});
