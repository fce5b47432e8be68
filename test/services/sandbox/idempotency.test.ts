import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import type { ServiceError } from "../../../runtime/errors.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import type { Answered } from "../../../services/sandbox/domain/idempotency.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import type { Sandbox } from "../../../services/sandbox/domain/sandbox.ts";
import { replayToMessage, sandboxToMessage } from "../../../services/sandbox/messages.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  setEngine,
  setLimits,
} from "./support.ts";

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

const sha256 = (text: string) => createHash("sha256").update(text).digest();

/** The same caller with a key, for a request that is told apart by `request`. */
function keyed(caller: Caller, request = "request", key: string = randomUUID()): Caller {
  return { ...caller, idempotency: { key, requestSha256: sha256(request) } };
}

async function counts({ orgId }: Caller) {
  const [row] = await bench.database.query<
    Record<"sandboxes" | "runs" | "events" | "records", number>
  >(
    `SELECT (SELECT count(*)::int FROM sandbox.sandboxes WHERE org_id = $1::uuid) AS sandboxes,
            (SELECT count(*)::int FROM sandbox.runs WHERE org_id = $1::uuid) AS runs,
            (SELECT count(*)::int FROM organization.events WHERE org_id = $1::uuid) AS events,
            (SELECT count(*)::int FROM organization.idempotency WHERE org_id = $1::uuid) AS records`,
    orgId,
  );
  return row;
}

async function refused(doing: Promise<unknown>): Promise<ServiceError> {
  return doing.then(
    () => expect.unreachable("it was not refused"),
    (error) => error,
  );
}

const many = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: 100 }, make));

test.each([
  ["with a generated name", {}],
  ["with a name", { name: "twin" }],
  ["with a slug", { slug: "twin-slug" }],
])("100 creates at once with one key, %s: one sandbox, 100 equal answers", async (_, rest) => {
  const caller = keyed(newCaller());
  await setLimits(bench.database, caller.orgId, {
    max_sandboxes: 1,
    max_concurrent_persistent_running: 1,
  });
  const input = createInput({ labels: { a: "b" } }, { ...rest, start: true });
  const answers = await many(() => createSandbox(bench.ctx, caller, input));
  expect(answers.filter(({ replay }) => !replay)).toHaveLength(1);
  const messages = new Set(answers.map((each) => JSON.stringify(plain(each))));
  expect(messages.size).toBe(1);
  expect(await counts(caller)).toEqual({ sandboxes: 1, runs: 1, events: 2, records: 1 });
});

// All that a client can see; bigints have no JSON.
function plain(sandbox: Sandbox) {
  return JSON.parse(
    JSON.stringify(sandboxToMessage(sandbox), (_, v) => (typeof v === "bigint" ? `${v}` : v)),
  );
}

describe("each verb is done once, and its answer is kept as it was", () => {
  /** A sandbox of its own, run, and stopped where asked. */
  async function sandbox(caller: Caller, state: "created" | "running" | "stopped") {
    const spec = { env: [{ key: "A", value: "ü" }], resources: { vcpus: 2, memoryMib: 100 } };
    const { id } = await createSandbox(bench.ctx, caller, createInput(spec));
    if (state === "created") return id;
    await change.startSandbox(bench.ctx, caller, { id });
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    if (state === "running") return id;
    await report(bench.ctx, id, 1, {
      kind: "ended",
      endedAt: null,
      cause: "crashed",
      message: "it broke",
    });
    return id;
  }

  const verbs: [
    string,
    "created" | "running" | "stopped",
    (caller: Caller, id: string) => Promise<Answered>,
  ][] = [
    ["start", "stopped", (caller, id) => change.startSandbox(bench.ctx, caller, { id })],
    ["stop", "running", (caller, id) => change.stopSandbox(bench.ctx, caller, { id })],
    ["destroy", "running", (caller, id) => change.destroySandbox(bench.ctx, caller, { id })],
    [
      "rename",
      "stopped",
      (caller, id) => change.renameSandbox(bench.ctx, caller, { id }, { name: "new", slug: null }),
    ],
    [
      "a rename to what it is",
      "stopped",
      (caller, id) => change.renameSandbox(bench.ctx, caller, { id }, { name: null, slug: null }),
    ],
  ];

  test.each(verbs)("%s", async (name, state, verb) => {
    const owner = newCaller();
    const caller = keyed(owner);
    const id = await sandbox(owner, state);
    const before = await counts(owner);
    const answers = await many(() => verb(caller, id));
    const [first] = answers.filter(({ replay }) => !replay);
    const after = await counts(owner);
    // Whatever comes of it afterwards, the answer stays.
    if (name !== "destroy") await change.destroySandbox(bench.ctx, owner, { id });
    await report(bench.ctx, id, 1, { kind: "removed" });
    answers.push(await verb(caller, id));
    if (!first) throw new Error("nobody did it");
    for (const { replay, ...answer } of answers) {
      expect(answer).toEqual(first);
      if (answer !== first) expect(plain(answer)).toEqual(plain(first));
    }
    expect(answers.filter(({ replay }) => replay)).toHaveLength(100);
    const changes = name === "a rename to what it is" ? 0 : 1;
    expect(after).toMatchObject({ events: (before?.events ?? 0) + changes, records: 1 });
    const records = await bench.database.query(
      "SELECT verb, resource_id FROM organization.idempotency WHERE org_id = $1::uuid",
      owner.orgId,
    );
    const word = name.startsWith("a ") ? "rename" : name;
    expect(records).toEqual([{ verb: `sandbox_${word}`, resource_id: id }]);
  });

  test("by name too, though the name is another's by then", async () => {
    const owner = newCaller();
    const make = () => createSandbox(bench.ctx, owner, createInput({}, { name: "box" }));
    const { id } = await make();
    const [renaming, destroying] = [keyed(owner), keyed(owner)];
    const rename = () =>
      change.renameSandbox(bench.ctx, renaming, { name: "box" }, { name: "old", slug: null });
    await rename();
    const heir = await make();
    expect(await rename()).toMatchObject({ id, name: "old", replay: {} });
    const destroy = () => change.destroySandbox(bench.ctx, destroying, { name: "box" });
    await destroy();
    await make();
    expect(await destroy()).toMatchObject({ id: heir.id, replay: {} });
  });
});

describe("refusals", () => {
  test("by name, state, absence and quota are kept, though nothing stands in the way any more", async () => {
    const owner = newCaller();
    await setLimits(bench.database, owner.orgId, { max_sandboxes: 1 });
    const { id } = await createSandbox(bench.ctx, owner, createInput({}, { name: "box" }));
    const callers = [keyed(owner), keyed(owner), keyed(owner), keyed(owner)] as const;
    const tries = [
      () => createSandbox(bench.ctx, callers[0], createInput()),
      () => change.stopSandbox(bench.ctx, callers[1], { id }),
      () => change.startSandbox(bench.ctx, callers[2], { name: "later" }),
      () => change.renameSandbox(bench.ctx, callers[3], { id }, { name: "later", slug: null }),
    ];
    const firsts = [];
    for (const each of tries.slice(0, 3)) firsts.push(await refused(each()));
    await setLimits(bench.database, owner.orgId, {});
    const later = await createSandbox(bench.ctx, owner, createInput({}, { name: "later" }));
    for (const each of tries.slice(3)) firsts.push(await refused(each()));
    expect(firsts.map(({ reason }) => reason)).toEqual([
      "QUOTA_EXCEEDED",
      "INVALID_STATE_TRANSITION",
      "SANDBOX_NOT_FOUND",
      "NAME_ALREADY_EXISTS",
    ]);
    await change.startSandbox(bench.ctx, owner, { id });
    await change.destroySandbox(bench.ctx, owner, { id: later.id });
    const before = await counts(owner);
    for (const [i, again] of tries.entries()) {
      const error = await refused(again());
      const first = firsts[i];
      expect(error).toMatchObject({ reason: first?.reason, message: first?.message });
      expect(error.metadata).toEqual({ ...first?.metadata, replayed: "true" });
      expect(first?.metadata).not.toHaveProperty("replayed");
    }
    expect(await counts(owner)).toEqual(before);
  });

  test("100 at once with one key are refused alike", async () => {
    const caller = keyed(newCaller());
    const errors = await many(() =>
      refused(change.stopSandbox(bench.ctx, caller, { name: "none" })),
    );
    expect(new Set(errors.map(({ reason }) => reason))).toEqual(new Set(["SANDBOX_NOT_FOUND"]));
    expect(errors.filter(({ metadata }) => !metadata.replayed)).toHaveLength(1);
  });

  test("that wrote nothing and may be gone at the next try are not kept", async () => {
    const owner = newCaller();
    const [one, two] = [keyed(owner), keyed(owner)];
    const input = createInput({ init: { cmd: "auto" } }, { start: true });
    await setEngine(bench.database, { features: [] });
    const create = () => createSandbox(bench.ctx, one, input);
    expect(await refused(create())).toMatchObject({ reason: "INVALID_SANDBOX_CONFIG" });
    await setEngine(bench.database, { alive: false });
    expect(await refused(create())).toMatchObject({ reason: "ORCHESTRATOR_UNREACHABLE" });
    const named = createInput({
      mounts: [{ guest: "/v", source: { case: "named", value: { name: "data" } } }],
    });
    const invalid = createSandbox(bench.ctx, two, named);
    expect(await refused(invalid)).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await counts(owner)).toMatchObject({ records: 0 });
    await setEngine(bench.database);
    const made = await create();
    expect(made.replay).toBeUndefined();
    // Once it is done, an engine that is away stands in nobody's way.
    await setEngine(bench.database, { alive: false });
    expect(await create()).toMatchObject({ id: made.id, replay: {} });
    await setEngine(bench.database);
  });
});

test("a key that was used for another request is refused, and nothing is done", async () => {
  const owner = newCaller();
  await createSandbox(bench.ctx, keyed(owner, "first", "key"), createInput());
  const before = await counts(owner);
  const other = keyed(owner, "second", "key");
  const wrong = { reason: "IDEMPOTENCY_KEY_REUSED" };
  expect(await refused(createSandbox(bench.ctx, other, createInput()))).toMatchObject(wrong);
  const refusedFirst = keyed(owner, "third", "another key");
  await refused(change.stopSandbox(bench.ctx, refusedFirst, { name: "none" }));
  const reused = change.stopSandbox(bench.ctx, keyed(owner, "4", "another key"), { name: "none" });
  expect(await refused(reused)).toMatchObject(wrong);
  expect(await counts(owner)).toEqual({ ...before, records: 2 });
});

test("of two requests at once with one key one is done, and the other one refused", async () => {
  const owner = newCaller();
  const done = await Promise.allSettled(
    Array.from({ length: 40 }, (_, i) =>
      createSandbox(bench.ctx, keyed(owner, `${i % 2}`, "key"), createInput()),
    ),
  );
  expect(done.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
  for (const each of done)
    if (each.status === "rejected")
      expect(each.reason).toMatchObject({ reason: "IDEMPOTENCY_KEY_REUSED" });
  expect(await counts(owner)).toMatchObject({ sandboxes: 1, records: 1 });
});

test("a key is its organization's own, and is forgotten once it has expired", async () => {
  const [one, other] = [keyed(newCaller(), "r", "key"), keyed(newCaller(), "r", "key")];
  const first = await createSandbox(bench.ctx, one, createInput());
  expect((await createSandbox(bench.ctx, other, createInput())).replay).toBeUndefined();
  await bench.database.query(
    "UPDATE organization.idempotency SET expires_at = now() WHERE org_id = $1::uuid RETURNING key",
    one.orgId,
  );
  const second = await createSandbox(bench.ctx, keyed(one, "another", "key"), createInput());
  expect(second.replay).toBeUndefined();
  expect(second.id).not.toBe(first.id);
  expect(await counts(one)).toMatchObject({ sandboxes: 2, records: 1 });
});

test("neither a request nor its key's hash is kept readable", async () => {
  const caller = keyed(newCaller());
  await createSandbox(bench.ctx, caller, createInput());
  const [row] = await bench.database.query<{ hash: Uint8Array }>(
    "SELECT request_hash AS hash FROM organization.idempotency WHERE org_id = $1::uuid",
    caller.orgId,
  );
  const sent = caller.idempotency?.requestSha256 ?? new Uint8Array();
  expect(row?.hash).toHaveLength(32);
  expect(Buffer.from(row?.hash ?? []).equals(sent)).toBe(false);
  expect(Buffer.from(row?.hash ?? []).equals(bench.ctx.hashRequest(sent))).toBe(true);
});

test("a replay carries the answer that was kept; who did it itself is told of none", async () => {
  const caller = keyed(newCaller());
  const create = () => createSandbox(bench.ctx, caller, createInput());
  const made = await create();
  expect(replayToMessage(made)).toEqual({});
  const again = await create();
  expect(again.replay).toEqual({ answer: null });
  expect(replayToMessage(again)).toEqual({ replay: { answer: new Uint8Array() } });
  const answer = Buffer.from('{"status":"running"}');
  await bench.database.query(
    "UPDATE organization.idempotency SET answer = $2::bytea WHERE org_id = $1::uuid RETURNING key",
    caller.orgId,
    answer,
  );
  expect(Buffer.from((await create()).replay?.answer ?? []).equals(answer)).toBe(true);
});
