import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SandboxReads } from "../../gateway/v1/sandboxes/reads.ts";
import { SandboxSchema } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import {
  type BatchGetSandboxesRequest,
  SandboxService,
} from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { SandboxSpecSchema } from "../../proto/gen/sandbox/v1/spec_pb.ts";
import type { Caller } from "../../runtime/caller.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { createInProcessTransport } from "../../runtime/rpc/in-process.ts";
import { ORG_ID } from "./support/fake-services.ts";

const idOf = (n: number) => `019a9f2e-6f0a-7c3e-9b57-${String(n).padStart(12, "0")}`;
const caller: Caller = {
  orgId: ORG_ID,
  actor: { kind: "system", code: "test", label: "Test" },
  requestId: "request",
};

/** Sandboxes whose service leaves out what it is told to. */
function open(names: string[]) {
  const asked: Pick<BatchGetSandboxesRequest, "ids" | "names" | "knownSpecs">[] = [];
  const listed: string[] = [];
  const there = names.map((name, i) => ({ id: idOf(i), name, image: `image-${i}` }));
  const sandbox = ({ id, name, image }: (typeof there)[number], hasSpec: boolean) =>
    create(SandboxSchema, {
      ...{ id, name, orgId: ORG_ID },
      ...(hasSpec ? { spec: create(SandboxSpecSchema, { image }) } : {}),
    });
  const transport = createInProcessTransport(
    (router) =>
      router.service(SandboxService, {
        batchGetSandboxes: ({ ids, names, knownSpecs }) => {
          asked.push({ ids, names, knownSpecs });
          const wanted = there.filter(({ id, name }) => ids.includes(id) || names.includes(name));
          return { sandboxes: wanted.map((one) => sandbox(one, !knownSpecs.includes(one.id))) };
        },
        listSandboxes: ({ omitSpecs, pageSize }, context) => {
          listed.push(`${requireCaller(context).orgId} ${pageSize}`);
          return { sandboxes: there.map((one) => sandbox(one, !omitSpecs)) };
        },
      }),
    { log: { error: () => undefined }, freeze: true },
  );
  return {
    there,
    asked,
    listed,
    reads: new SandboxReads(createClient(SandboxService, transport), 1_000),
  };
}

const byId = (n: number) => ({ case: "id" as const, value: idOf(n) });
const byName = (value: string) => ({ case: "name" as const, value });

test("reads at the same moment are one call; a spec is sent once, and belongs to its sandbox", async () => {
  const { reads, asked } = open(["one", "two"]);
  const images = async () => {
    const found = await Promise.all(
      [byId(0), byName("two"), byId(0)].map((key) => reads.get(caller, key)),
    );
    return found.map(({ name, spec }) => `${name} ${spec?.image}`);
  };
  const expected = ["one image-0", "two image-1", "one image-0"];
  expect(await images()).toEqual(expected);
  expect(await images()).toEqual(expected);
  expect(asked).toEqual([
    { ids: [idOf(0)], names: ["two"], knownSpecs: [] },
    { ids: [idOf(0)], names: ["two"], knownSpecs: [idOf(0), idOf(1)] },
  ]);
});

test("a name that another sandbox has now gets that one's spec", async () => {
  const { reads, there } = open(["one", "two"]);
  expect((await reads.get(caller, byName("one"))).spec?.image).toBe("image-0");
  for (const [i, name] of ["two", "one"].entries()) Object.assign(there[i] ?? {}, { name });
  expect(await reads.get(caller, byName("one"))).toMatchObject({
    id: idOf(1),
    spec: { image: "image-1" },
  });
});

test("who asks for what is not there is told so, and nobody else", async () => {
  const { reads } = open(["one"]);
  const [found, lost] = await Promise.allSettled([
    reads.get(caller, byId(0)),
    reads.get(caller, byName("no")),
  ]);
  expect(found).toMatchObject({ status: "fulfilled", value: { name: "one" } });
  expect(lost).toMatchObject({ status: "rejected", reason: { code: "sandbox_not_found" } });
});

test("a page asks only for the specs that are not known", async () => {
  const { reads, asked } = open(["one", "two"]);
  await reads.get(caller, byId(0));
  for (const _ of [1, 2]) {
    const { sandboxes } = await reads.list(caller, {});
    expect(sandboxes.map(({ spec }) => spec?.image)).toEqual(["image-0", "image-1"]);
  }
  expect(asked.map(({ ids }) => ids)).toEqual([[idOf(0)], [idOf(1)]]);
});

test("the same page, asked for at the same moment, is one call; another page or organization has its own", async () => {
  const { reads, listed, there } = open(["one"]);
  const other = { ...caller, orgId: idOf(9) };
  const pages = await Promise.all([
    reads.list(caller, { limit: 5 }),
    reads.list(caller, { limit: 5 }),
    reads.list(caller, { limit: 6 }),
    reads.list(other, { limit: 5 }),
  ]);
  expect(listed.sort()).toEqual([`${ORG_ID} 5`, `${ORG_ID} 6`, `${other.orgId} 5`].sort());
  for (const { sandboxes } of pages) expect(sandboxes).toMatchObject([{ name: "one" }]);
  there.pop();
  expect(await reads.list(caller, { limit: 5 })).toMatchObject({ sandboxes: [] });
});

test("a call that fails fails for all who share it", async () => {
  const failing = createInProcessTransport(
    (router) =>
      router.service(SandboxService, {
        batchGetSandboxes: () => {
          throw new ConnectError("no", Code.Unavailable);
        },
      }),
    { log: { error: () => undefined } },
  );
  const reads = new SandboxReads(createClient(SandboxService, failing), 1_000);
  const both = await Promise.allSettled([0, 1].map((n) => reads.get(caller, byId(n))));
  for (const one of both)
    expect(one).toMatchObject({ status: "rejected", reason: { code: Code.Unavailable } });
});
