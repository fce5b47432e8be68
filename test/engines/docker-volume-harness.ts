import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v7 as uuid } from "uuid";
import { afterAll } from "vitest";
import type { DockerEngineOptions } from "../../services/orchestrator/engines/docker/docker-engine.ts";
import type { Allocation, EngineSpec } from "../../services/orchestrator/engines/engine.ts";
import {
  createDirectoryVolumes,
  type DirectoryVolumes,
} from "../../services/orchestrator/engines/volumes/directory-volumes.ts";
import type { TestImage } from "../support/images.ts";
import { allocate, type SpecChanges } from "./allocations.ts";
import { type DockerHarness, useDocker } from "./docker-harness.ts";

type Mount = EngineSpec["mounts"][number];

const PLAIN = { nodev: false, noexec: false, nosuid: false, readonly: false };

/** A mount of a volume by its name. */
export function named(name: string, guest: string, options: Partial<Mount["options"]> = {}): Mount {
  return { type: "named", name, guest, options: { ...PLAIN, ...options } };
}

/** A mount of a path of the host volume. */
export function bind(host: string, guest: string, options: Partial<Mount["options"]> = {}): Mount {
  return { type: "bind", host, guest, options: { ...PLAIN, ...options } };
}

/** A mount of a disk image in the host volume. */
export function image(
  host: string,
  guest: string,
  options: Partial<Mount["options"]> = {},
  rest: Pick<Mount, "format" | "fstype"> = {},
): Mount {
  const form = { format: "raw" as const, fstype: null, ...rest };
  return { type: "disk_image", host, guest, ...form, options: { ...PLAIN, ...options } };
}

export function tmpfs(guest: string, options: Partial<Mount["options"]> = {}, sizeMib = 1): Mount {
  return { type: "tmpfs", guest, sizeMib, options: { ...PLAIN, ...options } };
}

/** An organization's volumes in a folder of the test's own, and sandboxes that have them. */
export interface VolumeHarness extends DockerHarness {
  volumes: DirectoryVolumes;
  orgId: string;
  root: string;
  /** The folder of what a sandbox sees of a volume; "" is the host volume. */
  folder(name: string): Promise<string>;
  /** A sandbox with all volumes of the organization at hand. */
  sandbox(mounts: Mount[], spec?: SpecChanges, rest?: Partial<Allocation>): Allocation;
}

/** Call it in a suite. */
export function useVolumes(
  host: string,
  images: readonly TestImage[],
  names: readonly string[],
  options: Partial<DockerEngineOptions["docker"]> = {},
): VolumeHarness {
  const root = mkdtempSync(join(tmpdir(), "sandgate-volumes-"));
  const volumes = createDirectoryVolumes({ root });
  const harness = useDocker(host, images, options, volumes);
  const orgId = uuid();
  const ids = Object.fromEntries(["", ...names].map((name) => [name, uuid()]));
  const allocated = Object.fromEntries(
    Object.entries(ids).map(([name, volumeId]) => [name, { volumeId, full: false }]),
  );
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return {
    ...harness,
    volumes,
    orgId,
    root,
    folder: (name) => volumes.directory({ orgId, volumeId: ids[name] ?? "" }),
    sandbox: (mounts, spec = {}, rest = {}) =>
      allocate({ ...spec, mounts }, { orgId, volumes: allocated, ...rest }),
  };
}
