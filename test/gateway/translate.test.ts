import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CreateSandboxRequest } from "../../gateway/v1/sandboxes/schema/create.ts";
import { createMessage } from "../../gateway/v1/sandboxes/translate/request.ts";
import { publicSandbox } from "../../gateway/v1/sandboxes/translate/sandbox.ts";
import {
  SandboxSchema,
  SandboxStatus,
  SandboxStatusReason,
} from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import { CreateSandboxRequestSchema } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createBody } from "./support/arbitraries.ts";
import { fullBody } from "./support/bodies.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";
import { expectedSpec } from "./support/projection.ts";

// A body of the table is typed by what it is compared with.
const full = fullBody as unknown as CreateSandboxRequest;

/** The message as the other side of a wire has it. */
function received(body: CreateSandboxRequest) {
  const bytes = toBinary(CreateSandboxRequestSchema, createMessage(body, false));
  return fromBinary(CreateSandboxRequestSchema, bytes);
}

function shown(body: CreateSandboxRequest) {
  const { spec } = received(body);
  const createdAt = timestampFromDate(new Date(0));
  const status = SandboxStatus.CREATED;
  return publicSandbox(create(SandboxSchema, { status, createdAt, ...(spec ? { spec } : {}) }));
}

describe("request to message to answer", () => {
  test("shows what was asked for, for any valid create", () => {
    fc.assert(
      fc.property(createBody, (body) => {
        expect(shown(body).spec).toEqual(expectedSpec(body));
      }),
      { numRuns: 300 },
    );
  });

  test("shows what was asked for, for a create of every field", () => {
    expect(shown(full).spec).toEqual(expectedSpec(full));
  });

  test("shows nothing that is sealed or that is a place of a host", () => {
    const text = JSON.stringify(shown(full));
    for (const secret of ["s3cr3t-value", "HOST_TOKEN", "vault/x", "registry-pass", "/src"])
      expect(text).not.toContain(secret);
    for (const hidden of ["disk.img", "cache", "patches", 'registry"', "init", 'host"'])
      expect(text).not.toContain(hidden);
  });
});

describe("what an answer does not show arrives all the same", () => {
  test("input-only fields", () => {
    const { name, slug, start, spec } = received(full);
    expect({ name, slug, start }).toEqual({
      name: "Full.body_1",
      slug: "full-body-1",
      start: false,
    });
    expect(spec).toMatchObject({
      pullPolicy: 2,
      securityProfile: 2,
      registry: {
        mode: { case: "inline", value: { username: "user", password: "registry-pass" } },
      },
      init: { cmd: "/sbin/init", args: ["--x"], env: [{ key: "K", value: "V" }] },
      network: { strict: true, secrets: { entries: [{ value: "s3cr3t-value" }, { value: "" }] } },
    });
    expect(spec?.network?.secrets?.entries.map(({ source }) => source?.kind)).toEqual([
      { case: "env", value: "HOST_TOKEN" },
      { case: "store", value: "vault/x" },
    ]);
    expect(spec?.mounts.map(({ source }) => source.value)).toMatchObject([
      { host: "/src" },
      { name: "cache" },
      { sizeMib: 64 },
      { host: "disk.img" },
    ]);
  });

  test("patches, in order", () => {
    expect(received(full).spec?.patches.map(({ kind }) => kind)).toMatchObject([
      { case: "text", value: { path: "/etc/a", content: "text", mode: 0o644, replace: true } },
      {
        case: "file",
        value: { path: "/etc/b", content: Uint8Array.of(0, 127, 255), replace: false },
      },
      { case: "copyFile", value: { src: "a/b", dst: "/c", mode: 0o7777, replace: true } },
      { case: "copyDir", value: { src: "/d", dst: "/e", replace: true } },
      { case: "symlink", value: { target: "../x", link: "/f", replace: true } },
      { case: "mkdir", value: { path: "/g", mode: 0o755 } },
      { case: "remove", value: { path: "/h" } },
      { case: "append", value: { path: "/i", content: "more" } },
    ]);
  });

  test("the difference between an empty override and none", () => {
    const image = { type: "oci", reference: "a" } as const;
    const { runtime } = received({ image, runtime: { cmd: [], entrypoint: null } }).spec ?? {};
    expect([runtime?.cmd?.values, runtime?.entrypoint]).toEqual([[], undefined]);
  });

  test("the older form of an image", () => {
    expect(received({ source: "oci", reference: "a:1" }).spec?.image).toBe("a:1");
  });

  test.each([
    [{ mode: "auto" }, "auto"],
    [{ mode: "anonymous" }, "anonymous"],
    [{ mode: "specific", credential_id: "c" }, "specific"],
  ] as const)("registry %j", (registry, kind) => {
    const { spec } = received({ image: { type: "oci", reference: "a" }, registry });
    expect(spec?.registry?.mode.case).toBe(kind);
  });
});

describe("a sandbox", () => {
  const base = { createdAt: timestampFromDate(new Date("2026-01-02T03:04:05.678Z")), spec: {} };

  test("has every field of the contract and no other", () => {
    const sandbox = publicSandbox(
      create(SandboxSchema, {
        ...base,
        id: "i",
        orgId: "o",
        name: "n",
        slug: "s",
        status: SandboxStatus.STARTING,
        statusReason: SandboxStatusReason.INSUFFICIENT_CAPACITY,
        ephemeral: true,
        startedAt: timestampFromDate(new Date("2026-01-02T03:04:06Z")),
        stoppedAt: timestampFromDate(new Date("2026-01-02T03:04:07Z")),
        lastFailureMessage: "out of luck",
        generation: 7,
      }),
    );
    expect({ ...sandbox, spec: undefined }).toEqual({
      id: "i",
      org_id: "o",
      name: "n",
      slug: "s",
      status: "starting",
      status_reason: "insufficient_capacity",
      ephemeral: true,
      created_at: "2026-01-02T03:04:05.678Z",
      started_at: "2026-01-02T03:04:06.000Z",
      stopped_at: "2026-01-02T03:04:07.000Z",
      last_failure_message: "out of luck",
      spec: undefined,
    });
  });

  test.each(["created", "starting", "running", "stopping", "stopped", "failed"] as const)(
    "%s is spelled so, and what is not there is null",
    (word) => {
      const status = SandboxStatus[word.toUpperCase() as Uppercase<typeof word>];
      expect(publicSandbox(create(SandboxSchema, { ...base, status }))).toMatchObject({
        status: word,
        status_reason: null,
        started_at: null,
        stopped_at: null,
        last_failure_message: null,
      });
    },
  );

  test("of a status that is not known here is no answer", () => {
    expect(() => publicSandbox(create(SandboxSchema, base))).toThrow();
  });
});

describe("through the gateway", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await openGateway();
  });
  afterAll(() => gateway.close());

  test("any valid create passes the rules of the gateway and those of the messages", async () => {
    await fc.assert(
      fc.asyncProperty(createBody, async (body) => {
        const answer = await gateway.call("POST", "/v1/sandboxes", body);
        expect(answer).toMatchObject({ status: 200 });
        expect(answer.body.spec).toEqual(expectedSpec(body));
      }),
      { numRuns: 100 },
    );
  });
});
