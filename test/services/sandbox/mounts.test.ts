import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  DiskImageFormat,
  type MountSchema,
  type PatchSchema,
  SecurityProfile,
} from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { FSTYPES } from "../../../services/orchestrator/engines/docker/mounts/file-systems.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { deleteVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import { VOLUME_FEATURES, volumeNames } from "../../../services/sandbox/domain/mounted-volumes.ts";
import { getHostVolume } from "../../../services/sandbox/domain/read-volumes.ts";
import { type Observation, report } from "../../../services/sandbox/domain/report.ts";
import {
  FEATURES,
  patchRequirements,
  requirements,
  USUAL_FSTYPES,
  unsupported,
} from "../../../services/sandbox/domain/requirements.ts";
import { WRONG_VOLUMES_SQL } from "../../support/volumes.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  newTenant,
  setEngine,
  setLimits,
} from "./support.ts";

type Mount = Exclude<MessageInitShape<typeof MountSchema>, Message>;
type Patch = Exclude<MessageInitShape<typeof PatchSchema>, Message>;

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
});
beforeEach(() => setEngine(bench.database));
afterAll(async () => {
  expect(await bench.database.query(WRONG_VOLUMES_SQL)).toEqual([]);
  await bench.close();
});

const named = (name: string, guest = `/mnt/${name}`): Mount => ({
  guest,
  source: { case: "named", value: { name } },
});
const bind: Mount = { guest: "/srv", source: { case: "bind", value: { host: "data" } } };
const tmpfs: Mount = { guest: "/scratch", source: { case: "tmpfs", value: {} } };
const copy: Patch = { kind: { case: "copyFile", value: { src: "a", dst: "/a" } } };

const volumeOf = async (caller: Caller, name: string) =>
  (await createVolume(bench.ctx, caller, { name, capacityGib: null, labels: {} })).id;

const make = (caller: Caller, mounts: Mount[], rest: { start?: boolean; name?: string } = {}) =>
  createSandbox(bench.ctx, caller, createInput({ mounts }, rest));

async function mountedBy(id: string) {
  const rows = await bench.database.query<{ name: string; volume_id: string }>(
    "SELECT name, volume_id FROM sandbox.mounted_volumes WHERE sandbox_id = $1::uuid ORDER BY name",
    id,
  );
  return rows.map(({ name, volume_id }) => [name, volume_id]);
}

async function counts() {
  const rows = await bench.database.query<
    Record<"sandboxes" | "runs" | "mounted" | "events", bigint>
  >(
    `SELECT (SELECT count(*) FROM sandbox.sandboxes) AS sandboxes, (SELECT count(*) FROM sandbox.runs) AS runs,
            (SELECT count(*) FROM sandbox.mounted_volumes) AS mounted, (SELECT count(*) FROM organization.events) AS events`,
  );
  return rows[0];
}

describe("a create writes down", () => {
  test("each volume that mounts name, once, and the host volume where one is bound", async () => {
    const caller = await newTenant(bench.database);
    const [a, b] = [await volumeOf(caller, "a"), await volumeOf(caller, "b")];
    const host = (await getHostVolume(bench.ctx, caller)).id;
    const mounts = [named("b"), tmpfs, named("a"), named("a", "/again"), bind];
    for (const start of [false, true]) {
      const { id } = await make(caller, mounts, { start });
      expect(await mountedBy(id)).toEqual([
        ["", host],
        ["a", a],
        ["b", b],
      ]);
    }
  });

  test("the host volume for a copy patch, and nothing for a sandbox without any", async () => {
    const caller = await newTenant(bench.database);
    const host = (await getHostVolume(bench.ctx, caller)).id;
    const copying = await createSandbox(bench.ctx, caller, createInput({ patches: [copy] }));
    expect(await mountedBy(copying.id)).toEqual([["", host]]);
    expect(await mountedBy((await make(caller, [tmpfs], { start: true })).id)).toEqual([]);
  });

  test("the volumes of its own organization alone", async () => {
    const [owner, other] = [await newTenant(bench.database), await newTenant(bench.database)];
    await volumeOf(owner, "data");
    const before = await counts();
    await expect(make(other, [named("data")])).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    const theirs = await volumeOf(other, "data");
    expect(await counts()).not.toEqual(before);
    expect(await mountedBy((await make(other, [named("data")])).id)).toEqual([["data", theirs]]);
  });
});

describe("a create is refused", () => {
  test("for every volume that does not exist, at its place in the request, and writes nothing", async () => {
    const caller = await newTenant(bench.database);
    await volumeOf(caller, "there");
    const deleted = await volumeOf(caller, "deleted");
    await deleteVolume(bench.ctx, caller, deleted);
    const mounts = [named("zz"), named("there"), bind, named("deleted"), named("zz", "/a")];
    const before = await counts();
    for (const start of [false, true])
      await expect(make(caller, mounts, { start })).rejects.toMatchObject({
        reason: "INVALID_REQUEST",
        faults: [
          { field: "spec.mounts[0].name", message: "volume 'zz' does not exist" },
          { field: "spec.mounts[3].name", message: "volume 'deleted' does not exist" },
          { field: "spec.mounts[4].name", message: "volume 'zz' does not exist" },
        ],
      });
    expect(await counts()).toEqual(before);
  });

  test("with all its other unknown references, though one of its volumes is there", async () => {
    const caller = await newTenant(bench.database);
    await volumeOf(caller, "there");
    const input = createInput({
      mounts: [named("there"), named("missing")],
      registry: { mode: { case: "specific", value: { credentialId: "c" } } },
    });
    await expect(createSandbox(bench.ctx, caller, input)).rejects.toMatchObject({
      faults: [{ field: "spec.mounts[1].name" }, { field: "spec.registry.credential_id" }],
    });
  });

  test("by engine and quota as any other, once its volumes are there", async () => {
    const caller = await newTenant(bench.database);
    await volumeOf(caller, "data");
    await setLimits(bench.database, caller.orgId, { max_sandboxes: 0 });
    const before = await counts();
    await expect(make(caller, [named("data")])).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
    await setEngine(bench.database, { features: ["network"] });
    await expect(make(caller, [named("data"), bind])).rejects.toMatchObject({
      reason: "INVALID_SANDBOX_CONFIG",
      faults: [
        {
          field: "spec.mounts[0]",
          message: "is a volume, which this deployment's engine cannot mount",
        },
        { field: "spec.mounts[1]" },
      ],
    });
    expect(await counts()).toEqual(before);
  });

  test("where an organization has no host volume, for there is none without", async () => {
    await expect(make(newCaller(), [bind])).rejects.toMatchObject({ reason: "ORG_NOT_FOUND" });
  });
});

describe("a start", () => {
  test("is refused where a volume was deleted meanwhile, at its place in the request", async () => {
    const caller = await newTenant(bench.database);
    await volumeOf(caller, "kept");
    const gone = await volumeOf(caller, "gone");
    const { id } = await make(caller, [named("kept"), named("gone")]);
    await deleteVolume(bench.ctx, caller, gone);
    const start = () => change.startSandbox(bench.ctx, caller, { id });
    const refused = {
      reason: "INVALID_SANDBOX_CONFIG",
      // Not that in the answer, where parents come first.
      faults: [{ field: "spec.mounts[1].name", message: "volume 'gone' was deleted" }],
    };
    const before = await counts();
    await expect(start()).rejects.toMatchObject(refused);
    // One that came to have the same name is another one; and one whose files are gone too is no different.
    const heir = await volumeOf(caller, "gone");
    await expect(start()).rejects.toMatchObject(refused);
    await bench.ctx.store.reportVolumeRemoved(gone);
    await expect(start()).rejects.toMatchObject(refused);
    expect(await counts()).toMatchObject({ runs: before?.runs });
    const { id: next } = await make(caller, [named("gone")], { start: true });
    expect(await mountedBy(next)).toEqual([["gone", heir]]);
  });

  test("names what the engine cannot do and what is gone together", async () => {
    const caller = await newTenant(bench.database);
    const gone = await volumeOf(caller, "gone");
    const { id } = await createSandbox(
      bench.ctx,
      caller,
      createInput({ mounts: [named("gone")], patches: [copy] }),
    );
    await deleteVolume(bench.ctx, caller, gone);
    await setEngine(bench.database, {
      features: FEATURES.filter((feature) => feature !== "patches.copy"),
    });
    await expect(change.startSandbox(bench.ctx, caller, { id })).rejects.toMatchObject({
      reason: "INVALID_SANDBOX_CONFIG",
      faults: [{ field: "spec.patches" }, { field: "spec.mounts[0].name" }],
    });
  });
});

describe("a volume is in use", () => {
  const ended: Observation = { kind: "ended", endedAt: null, cause: "stopped", message: "" };

  test("by what is starting, running or stopping, until that has ended", async () => {
    const caller = await newTenant(bench.database);
    const volumeId = await volumeOf(caller, "data");
    const { id } = await make(caller, [named("data")], { start: true, name: "box" });
    const inUse = () =>
      expect(deleteVolume(bench.ctx, caller, volumeId)).rejects.toMatchObject({
        reason: "VOLUME_IN_USE",
        message: "mounted by box",
        metadata: { sandboxes: "box" },
      });
    await inUse();
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    await inUse();
    await change.stopSandbox(bench.ctx, caller, { id });
    await inUse();
    await report(bench.ctx, id, 1, ended);
    await deleteVolume(bench.ctx, caller, volumeId);
  });

  test("by none that was not started, failed, was destroyed, or mounts another one", async () => {
    const caller = await newTenant(bench.database);
    const volumeId = await volumeOf(caller, "data");
    await volumeOf(caller, "other");
    await make(caller, [named("data")]);
    await make(caller, [named("other"), bind], { start: true });
    const failed = await make(caller, [named("data")], { start: true });
    await report(bench.ctx, failed.id, 1, { ...ended, cause: "crashed" });
    const destroyed = await make(caller, [named("data")], { start: true });
    await change.destroySandbox(bench.ctx, caller, { id: destroyed.id });
    await deleteVolume(bench.ctx, caller, volumeId);
  });

  test("by many: twenty are named, in their order", async () => {
    const caller = await newTenant(bench.database);
    const volumeId = await volumeOf(caller, "data");
    const names = Array.from({ length: 23 }, (_, i) => `box-${10 + i}`);
    await Promise.all(names.map((name) => make(caller, [named("data")], { start: true, name })));
    const sandboxes = names.slice(0, 20).join(", ");
    await expect(deleteVolume(bench.ctx, caller, volumeId)).rejects.toMatchObject({
      message: `mounted by ${sandboxes} and others`,
      metadata: { sandboxes },
    });
  });
});

test("what a destroyed sandbox mounted is forgotten with its row", async () => {
  const caller = await newTenant(bench.database);
  await volumeOf(caller, "data");
  const { id } = await make(caller, [named("data"), bind]);
  await change.destroySandbox(bench.ctx, caller, { id });
  expect(await mountedBy(id)).toHaveLength(2);
  await report(bench.ctx, id, 0, { kind: "removed" });
  expect(await mountedBy(id)).toEqual([]);
});

describe("what a spec asks of an engine", () => {
  const options = { noexec: true, nosuid: false, nodev: false, readonly: false };
  const optionsOf = (...specs: Parameters<typeof createInput>[0][]) =>
    specs.map((spec) =>
      requirements(createInput(spec).spec)
        .filter(({ feature }) => feature === "mounts.options")
        .map(({ field }) => field),
    );

  test("options of a volume but readonly, and the restricted profile with a volume", () => {
    const restricted = { securityProfile: SecurityProfile.RESTRICTED };
    const readonly = { ...options, noexec: false, readonly: true };
    expect(
      optionsOf(
        { mounts: [bind, { ...named("a"), options }] },
        { mounts: [{ ...bind, options: { ...options, noexec: false, nodev: true } }] },
        {
          mounts: [
            { ...named("a"), options: readonly },
            { ...tmpfs, options },
          ],
        },
        { ...restricted, mounts: [named("a"), bind] },
        { ...restricted, mounts: [tmpfs] },
        { mounts: [named("a")] },
      ),
    ).toEqual([["mounts[1].options"], ["mounts[0].options"], [], ["security_profile"], [], []]);
  });

  test("of disk images: the format, and what is no usual file system, at their fields", () => {
    const disk = (format: DiskImageFormat, fstype?: string): Mount => ({
      guest: "/disk",
      source: { case: "diskImage", value: { host: "x", format, fstype } },
    });
    const { QCOW2, RAW, VMDK } = DiskImageFormat;
    const given = [
      disk(RAW),
      disk(RAW, "ext4"),
      disk(QCOW2),
      disk(VMDK, "ext4"),
      disk(RAW, "ntfs"),
    ];
    const { spec } = createInput({ mounts: given });
    expect(unsupported(requirements(spec), ["mounts.disk_image", "network"])).toEqual([
      { field: "mounts[2].format", message: expect.stringMatching(/^is qcow2, .* raw$/) },
      { field: "mounts[3].format", message: expect.stringMatching(/^is vmdk, .* raw$/) },
      { field: "mounts[4].fstype", message: expect.stringMatching(/^cannot be mounted .* ext4/) },
    ]);
    expect(unsupported(requirements(spec), FEATURES)).toEqual([]);
    expect(FSTYPES.toSorted()).toEqual(USUAL_FSTYPES);
  });

  test("a sandbox has volumes exactly where it requires what takes something from one", () => {
    const disk: Mount = {
      guest: "/disk",
      source: { case: "diskImage", value: { host: "x", format: 2 } },
    };
    const remove: Patch = { kind: { case: "remove", value: { path: "/a" } } };
    const some = [{ mounts: [bind] }, { mounts: [named("a")] }, { mounts: [disk] }];
    const given = [...some, { patches: [copy] }, { mounts: [tmpfs], patches: [remove] }, {}];
    for (const { spec, sealed } of given.map((each) => createInput(each))) {
      const needs = [...requirements(spec), ...patchRequirements(sealed.patches)];
      const asked = needs.some(({ feature }) => VOLUME_FEATURES.some((each) => each === feature));
      expect(volumeNames(spec.mounts, sealed.patches).length > 0).toBe(asked);
    }
  });
});
