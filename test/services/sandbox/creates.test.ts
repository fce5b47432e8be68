import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { createStore } from "../../../services/sandbox/store.ts";
import {
  type Bench,
  createBench,
  createInput,
  eventsOf,
  newCaller,
  newTenant,
  setEngine,
  setLimits,
} from "./support.ts";

let bench: Bench;
let statements: string[];

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
  const query: typeof bench.database.query = (sql, ...values) => {
    statements.push(sql);
    return bench.database.query(sql, ...values);
  };
  bench.ctx.store = createStore({ ...bench.database, query });
});
beforeEach(() => {
  statements = [];
});
afterAll(() => bench.close());

const named = (name: string, start = false) => createInput({}, { name, start });
const inserts = () => statements.filter((sql) => sql.includes("INTO sandbox.sandboxes")).length;
const namesOf = (start: number, count: number) =>
  Array.from({ length: count }, (_, i) => `box-${start + i}`);

test("creates of an organization that come at once are few statements, each with its own events", async () => {
  const caller = newCaller();
  const inputs = namesOf(0, 24).map((name, i) => named(name, i % 3 === 0));
  const made = await Promise.all(inputs.map((input) => createSandbox(bench.ctx, caller, input)));
  expect(made.map(({ name, status }) => [name, status])).toEqual(
    inputs.map(({ name, start }) => [name, start ? "starting" : "created"]),
  );
  expect(inserts()).toBeLessThanOrEqual(24 / 4);
  const events = await eventsOf(bench.database, caller);
  const of = (id: string) => events.filter(({ payload }) => payload.sandbox_id === id);
  for (const { id, name, slug, status } of made) {
    const types =
      status === "starting" ? ["sandbox_created", "sandbox_started"] : ["sandbox_created"];
    expect(of(id)).toEqual(
      types.map((type) => ({ type, actor: caller.actor, payload: { sandbox_id: id, name, slug } })),
    );
  }
  const runs = await bench.database.query<{ id: string }>(
    "SELECT sandbox_id AS id FROM sandbox.runs WHERE org_id = $1::uuid AND closed_at IS NULL",
    caller.orgId,
  );
  const started = made.filter(({ status }) => status === "starting");
  expect(runs.map(({ id }) => id).sort()).toEqual(started.map(({ id }) => id).sort());
});

test("organizations do not wait for each other's, and make each their own", async () => {
  const callers = Array.from({ length: 6 }, newCaller);
  const made = await Promise.all(
    callers.map((caller) => createSandbox(bench.ctx, caller, named("same"))),
  );
  expect(made.map(({ orgId }) => orgId)).toEqual(callers.map(({ orgId }) => orgId));
  expect(inserts()).toBe(6);
});

test("a name that is taken refuses its own create alone", async () => {
  const caller = newCaller();
  await createSandbox(bench.ctx, caller, named("box-3"));
  const tries = [...namesOf(0, 6), "box-1"].map((name) =>
    createSandbox(bench.ctx, caller, named(name)),
  );
  const ends = await Promise.allSettled(tries);
  const refused = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  expect(refused).toHaveLength(2);
  for (const reason of refused)
    expect(reason).toMatchObject({ reason: "NAME_ALREADY_EXISTS", metadata: { field: "name" } });
});

test("what PostgreSQL cannot hold fails its own create alone", async () => {
  const caller = newCaller();
  const unheld = createInput({}, { name: "box-2" });
  unheld.spec = { ...unheld.spec, labels: { zero: "\0" } };
  const ends = await Promise.allSettled(
    [named("box-0"), named("box-1"), unheld, named("box-3")].map((input) =>
      createSandbox(bench.ctx, caller, input),
    ),
  );
  expect(ends.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
});

test("of more than there is room for as many are made as there is room for", async () => {
  const caller = newCaller();
  await setLimits(bench.database, caller.orgId, {
    max_sandboxes: 5,
    max_concurrent_persistent_running: 2,
  });
  const ends = await Promise.allSettled(
    namesOf(0, 8).map((name, i) => createSandbox(bench.ctx, caller, named(name, i < 4))),
  );
  const made = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  expect(made).toHaveLength(5);
  expect(made.filter(({ status }) => status === "starting").length).toBeLessThanOrEqual(2);
  for (const end of ends)
    if (end.status === "rejected") expect(end.reason).toMatchObject({ reason: "QUOTA_EXCEEDED" });
});

test("what one of them keeps secret, mounts or is remembered by is its own", async () => {
  const caller = await newTenant(bench.database);
  const remembered = (key: string) => ({
    ...caller,
    idempotency: { key, requestSha256: Buffer.alloc(32, key) },
  });
  const secret = createInput({
    patches: [{ kind: { case: "text", value: { path: "/a", content: "x" } } }],
  });
  const mounts = createInput({
    mounts: [{ guest: "/data", source: { case: "bind", value: { host: "/" } } }],
  });
  const [plain, sealed, mounting, first, twin] = await Promise.all([
    createSandbox(bench.ctx, caller, named("plain")),
    createSandbox(bench.ctx, caller, secret),
    createSandbox(bench.ctx, caller, mounts),
    createSandbox(bench.ctx, remembered("a"), named("by-key")),
    createSandbox(bench.ctx, remembered("a"), named("by-key")),
  ]);
  expect(twin.id).toBe(first.id);
  const idsIn = async (table: string) => {
    const rows = await bench.database.query<{ id: string }>(
      `SELECT sandbox_id AS id FROM sandbox.${table} JOIN sandbox.sandboxes s ON s.id = sandbox_id
       WHERE s.org_id = $1::uuid`,
      caller.orgId,
    );
    return rows.map(({ id }) => id);
  };
  expect(await idsIn("sealed_specs")).toEqual([sealed.id]);
  expect(await idsIn("mounted_volumes")).toEqual([mounting.id]);
  expect(plain.spec.mounts).toEqual([]);
});
