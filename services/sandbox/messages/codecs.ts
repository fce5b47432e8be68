import * as pb from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { RLIMIT_RESOURCES } from "../domain/spec.ts";
import { enumCodec } from "./enums.ts";

export const logLevel = enumCodec(pb.LogLevel, ["error", "warn", "info", "debug", "trace"]);
export const rlimitResource = enumCodec(pb.RlimitResource, RLIMIT_RESOURCES);
export const statVirtualization = enumCodec(pb.StatVirtualization, ["strict", "relaxed", "off"]);
export const hostPermissions = enumCodec(pb.HostPermissions, ["private", "mirror"]);
export const diskImageFormat = enumCodec(pb.DiskImageFormat, ["qcow2", "raw", "vmdk"]);
export const networkAction = enumCodec(pb.NetworkAction, ["allow", "deny"]);
export const networkDirection = enumCodec(pb.NetworkDirection, ["egress", "ingress", "any"]);
export const networkProtocol = enumCodec(pb.NetworkProtocol, ["tcp", "udp", "icmpv4", "icmpv6"]);
export const destinationGroup = enumCodec(pb.DestinationGroup, [
  "public",
  "loopback",
  "private",
  "link_local",
  "metadata",
  "multicast",
  "host",
]);
export const pullPolicy = enumCodec(pb.PullPolicy, ["if_missing", "always", "never"]);
export const securityProfile = enumCodec(pb.SecurityProfile, ["default", "restricted"]);
