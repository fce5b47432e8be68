import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Mount as MountMessage, MountSchema } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given } from "../../../runtime/rpc/given.ts";
import type { Mount, MountOptions } from "../domain/spec.ts";
import * as codecs from "./codecs.ts";

const OPTIONS: MountOptions = { nodev: false, noexec: false, nosuid: false, readonly: false };

export function mountFromMessage({ guest, options, source }: MountMessage): Mount {
  const { nodev, noexec, nosuid, readonly } = options ?? OPTIONS;
  const base = { guest, options: { nodev, noexec, nosuid, readonly } };
  switch (source.case) {
    case "bind": {
      const { host, quotaMib = null } = source.value;
      return { ...base, type: "bind", host, ...sharing(source.value), quotaMib };
    }
    case "named":
      return { ...base, type: "named", name: source.value.name, ...sharing(source.value) };
    case "diskImage": {
      const { host, format, fstype = null } = source.value;
      const word = codecs.diskImageFormat.toWord(format) ?? "raw";
      return { ...base, type: "disk_image", host, format: word, fstype };
    }
    default:
      return { ...base, type: "tmpfs", sizeMib: source.value?.sizeMib ?? null };
  }
}

function sharing(from: { statVirtualization: number; hostPermissions: number }) {
  return {
    statVirtualization: codecs.statVirtualization.toWord(from.statVirtualization) ?? "strict",
    hostPermissions: codecs.hostPermissions.toWord(from.hostPermissions) ?? "private",
  };
}

/** Without host paths and volume names, which no answer shows. */
export function mountToMessage(mount: Mount): MessageInitShape<typeof MountSchema> {
  const { guest, options } = mount;
  return { guest, options, source: sourceOf(mount) };
}

function sourceOf(mount: Mount): NonNullable<MessageInitShape<typeof MountSchema>["source"]> {
  switch (mount.type) {
    case "bind":
      return { case: "bind", value: { ...sharingOf(mount), ...given("quotaMib", mount.quotaMib) } };
    case "named":
      return { case: "named", value: sharingOf(mount) };
    case "tmpfs":
      return { case: "tmpfs", value: given("sizeMib", mount.sizeMib) };
    case "disk_image": {
      const format = codecs.diskImageFormat.toNumber(mount.format);
      return { case: "diskImage", value: { format, ...given("fstype", mount.fstype) } };
    }
  }
}

function sharingOf(mount: Extract<Mount, { statVirtualization: unknown }>) {
  return {
    statVirtualization: codecs.statVirtualization.toNumber(mount.statVirtualization),
    hostPermissions: codecs.hostPermissions.toNumber(mount.hostPermissions),
  };
}
