import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, type Api, image, type Program, startProgram } from "../support/program.ts";

let program: Program;
let other: Api;
let mine: { id: string; name: string; slug: string };
const NOBODY = "01990000-0000-7000-8000-000000000000";

beforeAll(async () => {
  program = await startProgram();
  other = (await program.addOrganization("other")).api;
  const created = await program.api("POST", "/v1/sandboxes?start=true&wait_for=running", {
    ...image(),
    name: "mine",
  });
  expect(created.body.status).toBe("running");
  mine = created.body;
});
afterAll(() => program.close());

const shown = ({ status, body }: Answer) => ({ status, body });

// Every route that names a sandbox, by id and by name.
test.each([
  ["GET", "/v1/sandboxes/:id"],
  ["PATCH", "/v1/sandboxes/:id", { name: "stolen" }],
  ["POST", "/v1/sandboxes/:id/start", {}],
  ["POST", "/v1/sandboxes/:id/start?wait_for=running&wait_timeout=1", {}],
  ["POST", "/v1/sandboxes/:id/stop", {}],
  ["DELETE", "/v1/sandboxes/:id"],
  ["GET", "/v1/sandboxes/by-name/:name"],
  ["POST", "/v1/sandboxes/by-name/:name/start", {}],
  ["POST", "/v1/sandboxes/by-name/:name/stop", {}],
  ["DELETE", "/v1/sandboxes/by-name/:name"],
] as const)(
  "%s %s of another organization answers as if it did not exist",
  async (method, path, body?) => {
    const named = path.replace(":id", mine.id).replace(":name", mine.name);
    const missing = path.replace(":id", NOBODY).replace(":name", "no-such");
    const foreign = shown(await other(method, named, body));
    expect(foreign).toEqual(shown(await other(method, missing, body)));
    expect(foreign).toMatchObject({ status: 404, body: { error: { code: "sandbox_not_found" } } });
    expect((await program.api("GET", `/v1/sandboxes/${mine.id}`)).body).toMatchObject({
      name: "mine",
      status: "running",
    });
  },
);

test("lists, names and cursors are the organization's own; slugs are everybody's", async () => {
  expect((await other("GET", "/v1/sandboxes")).body.data).toEqual([]);
  const same = await other("POST", "/v1/sandboxes", { ...image(), name: "mine" });
  expect(same.status).toBe(200);
  const slug = await other("POST", "/v1/sandboxes", { ...image(), slug: mine.slug });
  expect(shown(slug)).toEqual({
    status: 409,
    body: {
      error: {
        code: "name_already_exists",
        message: "'slug' already exists",
        details: { field: "slug" },
      },
    },
  });
  await program.api("POST", "/v1/sandboxes", image());
  const { body } = await program.api("GET", "/v1/sandboxes?limit=1");
  const stolen = await other("GET", `/v1/sandboxes?limit=1&cursor=${body.next_cursor}`);
  expect(stolen).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
});

test("each key sees its own organization", async () => {
  expect((await program.api("GET", "/v1/me/org")).body).toMatchObject({
    slug: "default",
    role: "owner",
  });
  expect((await other("GET", "/v1/me/org")).body).toMatchObject({ slug: "other", name: "other" });
});
