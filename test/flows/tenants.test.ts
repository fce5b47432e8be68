import { afterAll, beforeAll, expect, test } from "vitest";
import { getFile, pathHeader, putFile } from "../support/files.ts";
import { type Answer, type Api, image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

inBothShapes("tenants", (startProgram) => {
  let program: Program;
  let other: Api;
  let mine: { id: string; name: string; slug: string };
  let volume: string;
  let host: string;
  const SLOW = { timeout: 30_000 };
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
    volume = (await program.api("POST", "/v1/volumes", { name: "mine" })).body.id;
    host = (await program.api("GET", "/v1/volumes/default")).body.id;
    for (const id of [volume, host])
      expect((await putFile(program.api, id, "dir/file", "mine")).status).toBe(200);
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
      expect(foreign).toMatchObject({
        status: 404,
        body: { error: { code: "sandbox_not_found" } },
      });
      expect((await program.api("GET", `/v1/sandboxes/${mine.id}`)).body).toMatchObject({
        name: "mine",
        status: "running",
      });
    },
  );

  // Every route that names a volume; `file` says what is done with which path.
  const VOLUME_ROUTES: [method: string, path: string, body?: object | undefined, file?: string][] =
    [
      ["GET", "/v1/volumes/:id"],
      ["PATCH", "/v1/volumes/:id", { labels: { stolen: "yes" } }],
      ["PATCH", "/v1/volumes/:id", { capacity_gib: 1 }],
      ["DELETE", "/v1/volumes/:id"],
      ["GET", "/v1/volumes/:id/files", undefined, "dir"],
      ["GET", "/v1/volumes/:id/files/content", undefined, "dir/file"],
      ["GET", "/v1/volumes/:id/files/stat", undefined, "dir/file"],
      ["GET", "/v1/volumes/:id/files/exists", undefined, "dir/file"],
      ["GET", "/v1/volumes/:id/files/stat", undefined, "../outside"],
      ["PUT", "/v1/volumes/:id/files/content", undefined, "dir/file"],
      ["DELETE", "/v1/volumes/:id/files", undefined, "dir/file"],
      ["POST", "/v1/volumes/:id/files/mkdir", { path: "made" }],
      ["POST", "/v1/volumes/:id/files/copy", { from: "dir/file", to: "copied" }],
      ["POST", "/v1/volumes/:id/files/rename", { from: "dir/file", to: "moved" }],
    ];

  test.each(VOLUME_ROUTES)(
    "%s %s (%j) of another organization's volume answers as if it did not exist",
    async (method, path, body, file) => {
      const ask = async (id: string, keyed: boolean) => {
        const headers = {
          ...(file !== undefined && pathHeader(file)),
          ...(keyed && { "idempotency-key": `${method} ${path} ${id} ${Object.keys(body ?? {})}` }),
          ...(method === "PUT" && { "content-type": "application/octet-stream" }),
        };
        const init = { headers, ...(method === "PUT" && { body: "stolen" }) };
        return shown(await other(method, path.replace(":id", id), body, init));
      };
      for (const id of [volume, host])
        for (const keyed of method === "GET" || method === "PUT" ? [false] : [false, true]) {
          const foreign = await ask(id, keyed);
          expect(foreign).toEqual(await ask(NOBODY, keyed));
          expect(foreign).toMatchObject({
            status: 404,
            body: { error: { code: "volume_not_found" } },
          });
        }
      for (const id of [volume, host]) {
        const { text } = await getFile(program.url, program.apiKey, id, "dir/file");
        expect(text).toBe("mine");
      }
      const names = (await program.api("GET", `/v1/volumes/${volume}/files`)).body.entries;
      expect(names).toMatchObject([{ path: "/dir" }]);
      expect((await program.api("GET", `/v1/volumes/${volume}`)).body).toMatchObject({
        labels: {},
        capacity_bytes: null,
      });
    },
  );

  test("volumes, their names and what they held are the organization's own", async () => {
    const own = (await other("GET", "/v1/volumes/default")).body;
    expect(own).toMatchObject({ kind: "host", name: null });
    expect(own.id).not.toBe(host);
    expect((await other("GET", "/v1/volumes")).body).toEqual([own]);
    const mounts = [{ type: "named", name: "mine", guest: "/data" }];
    const mounting = await other("POST", "/v1/sandboxes", { ...image(), mounts });
    expect(mounting).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    const missing = await other("POST", "/v1/sandboxes", {
      ...image(),
      mounts: [{ ...mounts[0], name: "nobodys" }],
    });
    expect(JSON.stringify(mounting.body).replaceAll("mine", "nobodys")).toBe(
      JSON.stringify(missing.body),
    );
    expect((await other("POST", "/v1/volumes", { name: "mine" })).status).toBe(200);
    await expect
      .poll(async () => (await program.api("GET", `/v1/volumes/${volume}`)).body.used_bytes, SLOW)
      .toBe(4);
    const idsOf = async (api: Api) => {
      const { rows, volumes } = (await api("GET", "/v1/billing/usage/storage")).body;
      return [
        ...rows.map((row: { volume_id: string }) => row.volume_id),
        ...volumes.map((v: { id: string }) => v.id),
      ];
    };
    await expect.poll(() => idsOf(program.api), SLOW).toContain(volume);
    for (const id of [volume, host]) expect(await idsOf(other)).not.toContain(id);
  });

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
});
