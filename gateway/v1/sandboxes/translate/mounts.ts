import { create } from "@bufbuild/protobuf";
import {
  type BindMount,
  type Mount,
  MountSchema,
  type NamedMount,
  type MountOptions as OptionsMessage,
} from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given, nameOf, nameOr, numberOf } from "../../values.ts";
import type { MountInput, MountOptionsInput } from "../schema/mounts.ts";
import { canonicalPath } from "../schema/paths.ts";
import type { MountOptions, SpecMount } from "../schema/spec-mounts.ts";
import { diskFormats, hostPermissions, specDiskFormats, statVirtualizations } from "./enums.ts";

export function mountMessage(mount: MountInput): Mount {
  return create(MountSchema, {
    // As it will be stored; the services are slow to compare other forms.
    guest: canonicalPath(mount.guest),
    options: optionsInit(mount.options ?? {}),
    source: sourceInit(mount),
  });
}

function optionsInit({ nodev, noexec, nosuid, readonly }: MountOptionsInput) {
  return {
    nodev: nodev ?? false,
    noexec: noexec ?? false,
    nosuid: nosuid ?? false,
    readonly: readonly ?? false,
  };
}

function sourceInit(mount: MountInput) {
  switch (mount.type) {
    case "bind": {
      const { host, quota_mib } = mount;
      return {
        case: "bind",
        value: { host, ...sharingInit(mount), quotaMib: given(quota_mib) },
      } as const;
    }
    case "named":
      return { case: "named", value: { name: mount.name, ...sharingInit(mount) } } as const;
    case "tmpfs":
      return { case: "tmpfs", value: { sizeMib: given(mount.size_mib) } } as const;
    case "disk_image": {
      const { host, format, fstype } = mount;
      const value = { host, format: diskFormats[format], fstype: given(fstype) };
      return { case: "diskImage", value } as const;
    }
  }
}

function sharingInit(mount: MountInput & { type: "bind" | "named" }) {
  return {
    statVirtualization: numberOf(statVirtualizations, mount.stat_virtualization),
    hostPermissions: numberOf(hostPermissions, mount.host_permissions),
  };
}

/** Where the storage comes from stays behind. */
export function publicMount({ guest, options, source }: Mount): SpecMount {
  const shared = { guest, options: publicOptions(options) };
  switch (source.case) {
    case "bind": {
      const quota_mib = source.value.quotaMib ?? null;
      return { type: "Bind", ...shared, ...publicSharing(source.value), quota_mib };
    }
    case "named":
      return { type: "Named", ...shared, ...publicSharing(source.value) };
    case "tmpfs":
      return { type: "Tmpfs", ...shared, size_mib: source.value.sizeMib ?? null };
    case "diskImage": {
      const { format, fstype } = source.value;
      const spelled = nameOf(specDiskFormats, format);
      return { type: "DiskImage", ...shared, format: spelled, fstype: fstype ?? null };
    }
    default:
      throw new Error(`the mount at ${guest} has no source that is known here`);
  }
}

function publicOptions(options: OptionsMessage | undefined): MountOptions {
  const { nodev = false, noexec = false, nosuid = false, readonly = false } = options ?? {};
  return { nodev, noexec, nosuid, readonly };
}

function publicSharing(mount: BindMount | NamedMount) {
  return {
    stat_virtualization: nameOr(statVirtualizations, mount.statVirtualization, "strict"),
    host_permissions: nameOr(hostPermissions, mount.hostPermissions, "private"),
  };
}
