import { SandboxStatus, SandboxStatusReason } from "../../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import {
  DestinationGroup,
  DiskImageFormat,
  HostPermissions,
  LogLevel,
  NetworkAction,
  NetworkDirection,
  NetworkProtocol,
  PullPolicy,
  RlimitResource,
  SecurityProfile,
  StatVirtualization,
} from "../../../../proto/gen/sandbox/v1/spec_pb.ts";

/** Public words on the left, what messages carry on the right. */
export const statuses = {
  created: SandboxStatus.CREATED,
  starting: SandboxStatus.STARTING,
  running: SandboxStatus.RUNNING,
  stopping: SandboxStatus.STOPPING,
  stopped: SandboxStatus.STOPPED,
  failed: SandboxStatus.FAILED,
} as const;

export const statusReasons = {
  scheduling: SandboxStatusReason.SCHEDULING,
  insufficient_capacity: SandboxStatusReason.INSUFFICIENT_CAPACITY,
} as const;

export const logLevels = {
  error: LogLevel.ERROR,
  warn: LogLevel.WARN,
  info: LogLevel.INFO,
  debug: LogLevel.DEBUG,
  trace: LogLevel.TRACE,
} as const;

export const rlimitResources = {
  cpu: RlimitResource.CPU,
  fsize: RlimitResource.FSIZE,
  data: RlimitResource.DATA,
  stack: RlimitResource.STACK,
  core: RlimitResource.CORE,
  rss: RlimitResource.RSS,
  nproc: RlimitResource.NPROC,
  nofile: RlimitResource.NOFILE,
  memlock: RlimitResource.MEMLOCK,
  as: RlimitResource.AS,
  locks: RlimitResource.LOCKS,
  sigpending: RlimitResource.SIGPENDING,
  msgqueue: RlimitResource.MSGQUEUE,
  nice: RlimitResource.NICE,
  rtprio: RlimitResource.RTPRIO,
  rttime: RlimitResource.RTTIME,
} as const;

/** As answers spell them. */
export const specRlimitResources = {
  Cpu: RlimitResource.CPU,
  Fsize: RlimitResource.FSIZE,
  Data: RlimitResource.DATA,
  Stack: RlimitResource.STACK,
  Core: RlimitResource.CORE,
  Rss: RlimitResource.RSS,
  Nproc: RlimitResource.NPROC,
  Nofile: RlimitResource.NOFILE,
  Memlock: RlimitResource.MEMLOCK,
  As: RlimitResource.AS,
  Locks: RlimitResource.LOCKS,
  Sigpending: RlimitResource.SIGPENDING,
  Msgqueue: RlimitResource.MSGQUEUE,
  Nice: RlimitResource.NICE,
  Rtprio: RlimitResource.RTPRIO,
  Rttime: RlimitResource.RTTIME,
} as const;

export const statVirtualizations = {
  strict: StatVirtualization.STRICT,
  relaxed: StatVirtualization.RELAXED,
  off: StatVirtualization.OFF,
} as const;

export const hostPermissions = {
  private: HostPermissions.PRIVATE,
  mirror: HostPermissions.MIRROR,
} as const;

export const diskFormats = {
  qcow2: DiskImageFormat.QCOW2,
  raw: DiskImageFormat.RAW,
  vmdk: DiskImageFormat.VMDK,
} as const;

/** As answers spell them. */
export const specDiskFormats = {
  Qcow2: DiskImageFormat.QCOW2,
  Raw: DiskImageFormat.RAW,
  Vmdk: DiskImageFormat.VMDK,
} as const;

export const actions = { allow: NetworkAction.ALLOW, deny: NetworkAction.DENY } as const;

export const directions = {
  egress: NetworkDirection.EGRESS,
  ingress: NetworkDirection.INGRESS,
  any: NetworkDirection.ANY,
} as const;

export const protocols = {
  tcp: NetworkProtocol.TCP,
  udp: NetworkProtocol.UDP,
  icmpv4: NetworkProtocol.ICMPV4,
  icmpv6: NetworkProtocol.ICMPV6,
} as const;

export const groups = {
  public: DestinationGroup.PUBLIC,
  loopback: DestinationGroup.LOOPBACK,
  private: DestinationGroup.PRIVATE,
  link_local: DestinationGroup.LINK_LOCAL,
  metadata: DestinationGroup.METADATA,
  multicast: DestinationGroup.MULTICAST,
  host: DestinationGroup.HOST,
} as const;

export const pullPolicies = {
  if_missing: PullPolicy.IF_MISSING,
  always: PullPolicy.ALWAYS,
  never: PullPolicy.NEVER,
} as const;

export const securityProfiles = {
  default: SecurityProfile.DEFAULT,
  restricted: SecurityProfile.RESTRICTED,
} as const;
