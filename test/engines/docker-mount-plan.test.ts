import { mkdir, mkdtemp, open, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { parseMountinfo } from "../../services/orchestrator/engines/docker/mounts/mountinfo.ts";
import { lookAt, openPlace } from "../../services/orchestrator/engines/docker/mounts/places.ts";
import { dockerTmpfs, planMounts } from "../../services/orchestrator/engines/docker/mounts/plan.ts";
import type { EngineSpec } from "../../services/orchestrator/engines/engine.ts";
import { allocate } from "./allocations.ts";
import { bind, named, tmpfs } from "./docker-volume-harness.ts";

const VOLUMES = {
  "": { volumeId: "host-id", full: false },
  data: { volumeId: "data-id", full: false },
  full: { volumeId: "full-id", full: true },
};
const planOf = (mounts: EngineSpec["mounts"], spec: Partial<EngineSpec> = {}) =>
  planMounts({ ...allocate({ ...spec, mounts }), volumes: VOLUMES });

describe("a plan of mounts", () => {
  it("has parents first, and says of each what it is asked for", () => {
    const plan = planOf([
      named("data", "/a/b/c/", { noexec: true }),
      tmpfs("/a/b", { readonly: true }, 3),
      bind("x/y", "/a"),
      named("full", "/f"),
    ]);
    const off = { readonly: false, noexec: false, nosuid: false, nodev: false };
    expect(plan).toEqual([
      {
        kind: "volume",
        label: "mounts[2]",
        guest: "/a",
        field: "mounts[2].host",
        volumeId: "host-id",
        path: "x/y",
        flags: off,
      },
      {
        kind: "volume",
        label: "mounts[3]",
        guest: "/f",
        field: "mounts[3].name",
        volumeId: "full-id",
        path: "",
        flags: { ...off, readonly: true },
      },
      {
        kind: "tmpfs",
        label: "mounts[1]",
        guest: "/a/b",
        sizeMib: 3,
        flags: { ...off, readonly: true },
      },
      {
        kind: "volume",
        label: "mounts[0]",
        guest: "/a/b/c",
        field: "mounts[0].name",
        volumeId: "data-id",
        path: "",
        flags: { ...off, noexec: true },
      },
    ]);
  });

  it("leaves to Docker what has nothing to do with volumes", () => {
    const alone = [tmpfs("/t"), tmpfs("/dev/shm")];
    expect(planOf(alone)).toEqual([]);
    expect(dockerTmpfs({ mounts: alone })).toEqual(alone);
    const beside = [...alone, named("data", "/d")];
    expect(planOf(beside).map(({ guest }) => guest)).toEqual(["/t", "/d"]);
    expect(dockerTmpfs({ mounts: beside })).toEqual([tmpfs("/dev/shm")]);
  });

  it("forces flags on everything in a restricted sandbox", () => {
    const plan = planOf([named("data", "/d"), tmpfs("/t"), bind("", "/b")], {
      securityProfile: "restricted",
    });
    for (const { flags } of plan) expect(flags).toMatchObject({ nosuid: true, nodev: true });
  });
});

test("mounts are read as the kernel writes them", () => {
  const line =
    "36 35 98:0 /from/here /a\\040b\\134\\011ü rw,nosuid master:1 shared:2 - ext3 /dev/root rw,size=3k";
  expect(parseMountinfo(`${line}\n37 36 0:1 / /x ro - tmpfs tmpfs rw\n`)).toEqual([
    {
      id: 36,
      at: "/a b\\\tü",
      options: ["rw", "nosuid"],
      type: "ext3",
      superOptions: ["rw", "size=3k"],
    },
    { id: 37, at: "/x", options: ["ro"], type: "tmpfs", superOptions: ["rw"] },
  ]);
});

test("places are made whatever the mask says, and no link is followed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-places-"));
  const root = await open(folder);
  const mask = process.umask(0o077);
  try {
    await (await openPlace(root, "/a/b/file", "file")).close();
    await (await openPlace(root, "/a/b/dir", "directory")).close();
    expect((await stat(join(folder, "a/b"))).mode & 0o777).toBe(0o755);
    expect((await stat(join(folder, "a/b/file"))).mode & 0o777).toBe(0o644);
    await symlink("/etc", join(folder, "a/out"));
    await symlink("b", join(folder, "a/in"));
    await mkdir(join(folder, "secret"));
    await symlink("../secret", join(folder, "a/up"));
    for (const path of ["/a/out", "/a/out/x", "/a/in/x", "/a/up/x"])
      await expect(openPlace(root, path, "directory"), path).rejects.toThrow(/lies behind a link/);
    await writeFile(join(folder, "plain"), "");
    await expect(openPlace(root, "/plain/x", "directory")).rejects.toThrow(/no directory/);
    expect(await readdir(join(folder, "secret"))).toEqual([]);
    expect(await lookAt(root, "/a/none/x")).toBeUndefined();
    expect(await lookAt(root, "/a/b/file")).toMatchObject({ kind: "file", mode: 0o644 });
  } finally {
    process.umask(mask);
    await root.close();
    await rm(folder, { recursive: true });
  }
});
