import { text } from "node:stream/consumers";
import { v7 as uuid } from "uuid";
import { expect, it } from "vitest";
import {
  type Allocation,
  EngineFailure,
  type EngineSpec,
  type Patch,
} from "../../services/orchestrator/engines/engine.ts";
import type { VolumeFiles, VolumeKey } from "../../services/orchestrator/engines/volume-store.ts";
import { allocate, nextStart, UNHURRIED } from "./allocations.ts";
import type { EngineHarness } from "./conformance.ts";

type Mount = EngineSpec["mounts"][number];
type Options = Mount["options"];

const PLAIN: Options = { readonly: false, noexec: false, nosuid: false, nodev: false };
const NEEDED = ["mounts.named", "mounts.bind", "mounts.options", "patches.copy"];

/** What an engine does that says it mounts volumes, and whose machines can be looked into. */
export function describeMounts(harness: () => EngineHarness, mine: string[]): void {
  const start = (allocation: Allocation) => {
    mine.push(allocation.sandboxId);
    return harness().engine.ensureRunning(allocation, UNHURRIED);
  };

  /** An organization with two volumes and a host volume, as a sandbox of it is allocated. */
  function organization() {
    const orgId = uuid();
    const ids: Record<string, string> = { "": uuid(), one: uuid(), two: uuid() };
    const allocated = Object.entries(ids).map(([name, volumeId]) => [
      name,
      { volumeId, full: false },
    ]);
    const sandbox = (mounts: Mount[], patches: Patch[] = []) =>
      allocate({ mounts }, { orgId, patches, volumes: Object.fromEntries(allocated) });
    const key = (name: string): VolumeKey => ({ orgId, volumeId: ids[name] ?? "" });
    return { sandbox, key };
  }

  function able(skip: (why: string) => void) {
    const { engine, shell } = harness();
    const files = engine.volumes?.files;
    const missing = NEEDED.filter((feature) => !engine.features().includes(feature));
    if (!shell || !files || missing.length > 0) {
      skip(missing.length > 0 ? `it claims no ${missing.join()}` : "nothing runs in its machines");
      throw new Error("skipped");
    }
    return { shell, files };
  }

  it("show what is written from either side, to all that mount the same", async ({ skip }) => {
    const { shell, files } = able(skip);
    const { sandbox, key } = organization();
    const [one, other] = [sandbox([named("one", "/v")]), sandbox([named("one", "/deep/er/v")])];
    await write(files, key("one"), "from/outside", "o");
    await Promise.all([start(one), start(other)]);
    expect(await shell(one, "cat /v/from/outside; echo i >/v/inside")).toBe("o");
    expect(await shell(other, "cat /deep/er/v/inside")).toBe("i");
    expect(await read(files, key("one"), "inside")).toBe("i\n");
  });

  it("are of their organization and their name alone", async ({ skip }) => {
    const { shell, files } = able(skip);
    const [ours, theirs] = [organization(), organization()];
    const one = ours.sandbox([named("one", "/one"), named("two", "/two"), bind("", "/host")]);
    await start(one);
    await shell(one, "touch /one/1; touch /two/2; touch /host/h");
    expect(await shell(one, "ls /one /two /host")).toBe("/host:\nh\n\n/one:\n1\n\n/two:\n2");
    const other = theirs.sandbox([named("one", "/one"), bind("/", "/host")]);
    await start(other);
    expect(await shell(other, "ls -A /one /host")).toBe("/host:\n\n/one:");
    await expect(files.stat(theirs.key("one"), "1")).rejects.toThrow("does not exist");
  });

  it("are kept by a stop, and by the removal of who mounted them", async ({ skip }) => {
    const { shell, files } = able(skip);
    const { sandbox, key } = organization();
    const one = sandbox([named("one", "/v", { readonly: false })]);
    await start(one);
    await shell(one, "echo kept >/v/f");
    await harness().engine.stop(one, 0);
    await start(nextStart(one));
    expect(await shell(nextStart(one), "cat /v/f")).toBe("kept");
    await harness().engine.remove(one.sandboxId);
    expect(await read(files, key("one"), "f")).toBe("kept\n");
  });

  it("are a part of the host volume where one is bound, directory or file", async ({ skip }) => {
    const { shell, files } = able(skip);
    const { sandbox, key } = organization();
    await write(files, key(""), "a/b/f", "content");
    const one = sandbox([bind("a/b", "/dir"), bind("/a/b/f", "/x/file", { readonly: true })]);
    await start(one);
    expect(await shell(one, "cat /dir/f /x/file; ls /dir")).toBe("contentcontentf");
    expect(await shell(one, "echo x >/x/file")).toMatch(/read-only/i);
    const missing = sandbox([bind("a/b", "/dir"), bind("a/c", "/c")]);
    await expect(start(missing)).rejects.toThrow(EngineFailure);
    await expect(start(missing)).rejects.toThrow(/mounts\[1\]\.host/);
  });

  it("refuse writes where they are read-only or full, and programs where they say so", async ({
    skip,
  }) => {
    const { shell } = able(skip);
    const { sandbox } = organization();
    const plain = sandbox([
      named("one", "/ro", { readonly: true }),
      named("two", "/full"),
      bind("", "/host", { noexec: true }),
    ]);
    const { two } = plain.volumes;
    const volumes = { ...plain.volumes, ...(two && { two: { ...two, full: true } }) };
    const one = { ...plain, volumes };
    await start(one);
    for (const guest of ["/ro", "/full"])
      expect(await shell(one, `touch ${guest}/f`), guest).toMatch(/read-only/i);
    expect(await shell(one, "cp /bin/sh /host/true && /host/true")).toMatch(/denied/i);
  });

  it("lie in one another, also in read-only ones", async ({ skip }) => {
    const { shell, files } = able(skip);
    const { sandbox, key } = organization();
    const one = sandbox([named("one", "/a", { readonly: true }), named("two", "/a/new/b")]);
    await start(one);
    expect(await shell(one, "touch /a/f")).toMatch(/read-only/i);
    expect(await shell(one, "touch /a/new/b/f; ls /a/new/b")).toBe("f");
    expect(await files.stat(key("two"), "f")).toMatchObject({ kind: "file" });
  });

  it("are copied from at the first start", async ({ skip }) => {
    const { shell, files } = able(skip);
    const { sandbox, key } = organization();
    await write(files, key(""), "tree/a/f", "content");
    const copy: Patch = { kind: "copy_dir", src: "tree", dst: "/copied", replace: false };
    const src = "/tree/a/f";
    const file: Patch = { kind: "copy_file", src, dst: "/one", mode: 0o600, replace: false };
    const one = sandbox([], [copy, file]);
    await start(one);
    expect(await shell(one, "cat /copied/a/f /one; ls -l /one")).toMatch(
      /^contentcontent-rw-------/,
    );
    const missing = sandbox([], [copy, { ...file, src: "nowhere" }]);
    await expect(start(missing)).rejects.toThrow(/patches\[1\]\.src/);
  });
}

function named(name: string, guest: string, options: Partial<Options> = {}): Mount {
  return { type: "named", name, guest, options: { ...PLAIN, ...options } };
}

function bind(host: string, guest: string, options: Partial<Options> = {}): Mount {
  return { type: "bind", host, guest, options: { ...PLAIN, ...options } };
}

async function write(files: VolumeFiles, key: VolumeKey, path: string, content: string) {
  async function* all() {
    yield Buffer.from(content);
  }
  await files.write(key, path, all(), async () => undefined);
}

async function read(files: VolumeFiles, key: VolumeKey, path: string): Promise<string> {
  const file = await files.read(key, path, { offset: 0n, length: null });
  return await text(file.content);
}
