import { expect, test } from "vitest";
import type { Caller } from "../../runtime/caller.ts";
import {
  readActor,
  readCaller,
  writeActor,
  writeCaller,
} from "../../runtime/rpc/caller-headers.ts";
import { CALLER } from "./support.ts";

const SYSTEM = { kind: "system", code: "reaper", label: "Größe: 50 %" } as const;

test.each<Caller>([CALLER, { ...CALLER, actor: SYSTEM }])(
  "a caller survives its headers",
  (caller) => {
    const header = new Headers();
    writeCaller(header, caller);
    for (const [, value] of header) expect(value).toMatch(/^[\x20-\x7e]+$/);
    expect(readCaller(header)).toEqual(caller);
  },
);

test("who acts survives its header where no organization is named", () => {
  const header = new Headers();
  writeActor(header, SYSTEM);
  expect(readActor(header)).toEqual(SYSTEM);
  expect(readCaller(header)).toBeUndefined();
  expect(readActor(new Headers())).toBeUndefined();
});

test("without an organization there is no caller", () => {
  expect(readCaller(new Headers({ "x-request-id": "r" }))).toBeUndefined();
});

test("an organization alone is asked for by the service that has the token", () => {
  const caller = readCaller(new Headers({ "sandgate-organization-id": CALLER.orgId }));
  expect(caller).toMatchObject({ orgId: CALLER.orgId, actor: { kind: "system" } });
  expect(caller?.requestId).not.toBe("");
});

test("of an actor nothing unknown is kept", () => {
  const actor = encodeURIComponent(JSON.stringify({ ...SYSTEM, note: "x" }));
  const header = { "sandgate-organization-id": CALLER.orgId, "sandgate-actor": actor };
  expect(readCaller(new Headers(header))?.actor).toEqual(SYSTEM);
});

test.each([
  ["sandgate-organization-id", CALLER.orgId.toUpperCase()],
  ["sandgate-actor", "%ZZ"],
  ["sandgate-actor", "null"],
  ["sandgate-actor", encodeURIComponent('{"kind":"api_key","name":"no id"}')],
])("a malformed %s is refused", (name, value) => {
  const header = new Headers({ "sandgate-organization-id": CALLER.orgId, [name]: value });
  expect(() => readCaller(header)).toThrow(name);
});
