import { afterAll, beforeAll, expect, test } from "vitest";
import { destroySandbox } from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { listSandboxes } from "../../../services/sandbox/domain/list-sandboxes.ts";
import { type Bench, createBench, createInput, newCaller, setEngine } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

const NOTHING = { ids: [], names: [], knownSpecs: [] };

test("finds by id and by name, once, with the specs that are not known, and of one organization", async () => {
  const [caller, stranger] = [newCaller(), newCaller()];
  const make = (name: string, by = caller) =>
    createSandbox(bench.ctx, by, { ...createInput(), name });
  const [one, two, gone] = [await make("one"), await make("two"), await make("gone")];
  const foreign = await make("foreign", stranger);
  await destroySandbox(bench.ctx, caller, { id: gone.id });
  const found = await bench.ctx.store.findAll(caller.orgId, {
    ids: [one.id.toUpperCase(), gone.id, foreign.id],
    names: ["two", "gone", "foreign", "nobody"],
    knownSpecs: [two.id],
  });
  expect(found.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
    { ...one, replay: undefined },
    { ...two, replay: undefined, spec: null },
  ]);
  expect(await bench.ctx.store.findAll(caller.orgId, NOTHING)).toEqual([]);
});

test("a list leaves specs out where it is told to, and nothing else", async () => {
  const caller = newCaller();
  const made = await createSandbox(bench.ctx, caller, createInput());
  const list = async (omitSpecs: boolean) => {
    const first = { limit: 20, cursor: "", labels: {}, statuses: [], omitSpecs };
    return (await listSandboxes(bench.ctx, caller, first)).rows;
  };
  expect(await list(false)).toEqual([{ ...made, replay: undefined }]);
  expect(await list(true)).toEqual([{ ...made, replay: undefined, spec: null }]);
});
