import type { TlsFiles } from "./tls/certificate.ts";
import type { TracingConfig } from "./tracing/env.ts";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export const LOG_FORMATS = ["auto", "json", "pretty"] as const;
export const ENGINE_CHOICES = ["auto", "docker", "simulated"] as const;
export const NETWORK_POLICY_CHOICES = ["enforced", "unenforced"] as const;
export const DISK_IMAGE_CHOICES = ["refused", "loop"] as const;
export const MIGRATE_CHOICES = ["on", "off"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = (typeof LOG_FORMATS)[number];
export type EngineChoice = (typeof ENGINE_CHOICES)[number];
export type NetworkPolicyChoice = (typeof NETWORK_POLICY_CHOICES)[number];
export type DiskImageChoice = (typeof DISK_IMAGE_CHOICES)[number];
export type MigrateChoice = (typeof MIGRATE_CHOICES)[number];

/** Every setting, typed and checked; each part of the program is given only its own. */
export interface Config {
  /** Absolute path; the program makes it. */
  dataDir: string;
  /** A `postgresql://` URL; undefined: the program runs its own under `dataDir`. */
  databaseUrl: string | undefined;
  /** `off`: somebody else brings the schema up to date. */
  migrate: MigrateChoice;
  database: DatabaseConfig;
  log: LogConfig;
  /** Undefined: off. */
  tracing: TracingConfig | undefined;
  gateway: GatewayConfig;
  rpc: RpcConfig;
  admin: AdminConfig;
  engine: EngineConfig;
  orchestrator: OrchestratorConfig;
  organization: OrganizationConfig;
  billing: BillingConfig;
  /** The first key of the default organization; undefined: generated. */
  bootstrapApiKey: string | undefined;
  /** 32 bytes; undefined: kept in a file under `dataDir`. */
  secretsKey: Buffer | undefined;
  drain: DrainConfig;
}

export interface DrainConfig {
  /** From being told to stop: how long everything is still served while balancers are told that it ends. */
  delaySecs: number;
  /** After that: how long a stop lets work under way finish. */
  timeoutSecs: number;
}

export interface DatabaseConfig {
  /** Most connections that this process holds. */
  poolSize: number;
  /** Most statements that wait for one. */
  queueSize: number;
}

export interface LogConfig {
  level: LogLevel;
  /** `auto`: for people where it is written to a terminal, else JSON. */
  format: LogFormat;
}

export interface GatewayConfig {
  host: string;
  /** 0: any free one. */
  port: number;
  /** Origins such as `https://console.example.org`; empty: CORS is off. */
  corsOrigins: string[];
  /** Most waits held at once. */
  waitsMax: number;
  rateLimit: RateLimitConfig;
  /** Whether a line is written for each request. */
  logRequests: boolean;
  /** Addresses and networks whose `X-Forwarded-For` is believed; empty: nobody's. */
  trustedProxies: string[];
  /** What the public port speaks TLS with; undefined: it speaks none. */
  https: TlsFiles | undefined;
}

export interface RateLimitConfig {
  /** Requests a second that one key may make; 0: any number. */
  perSecond: number;
  /** How many at once, after a rest. */
  burst: number;
  /** A `redis://` URL that several gateways share; undefined: each counts for itself. */
  redisUrl: string | undefined;
}

export interface RpcConfig {
  host: string;
  /** 0: any free one; undefined: off. */
  port: number | undefined;
  /** Where a role that runs alone finds the others, such as `http://127.0.0.1:9091`. */
  urls: Record<"sandbox" | "orchestrator" | "organization" | "billing", string | undefined>;
  /** Most calls to one other service that are under way at once; as many streams may be open. */
  callsMax: number;
  /** What callers must send; undefined: kept in a file under `dataDir`. */
  serviceToken: string | undefined;
  /** What callers may still send while a new token is brought to all. */
  previousServiceToken: string | undefined;
  /** What services prove themselves by to each other; undefined: by the token alone. */
  tls: TlsFiles | undefined;
}

export interface AdminConfig {
  host: string;
  /** 0: any free one; undefined: off. */
  port: number | undefined;
}

export interface EngineConfig {
  /** Where volumes lie, an absolute path; an engine on this host has to see the same folder there. */
  volumesDir: string;
  choice: EngineChoice;
  /** Such as `unix:///var/run/docker.sock`; undefined: Docker's default. */
  dockerHost: string | undefined;
  /** `unenforced`: the operator accepts that network policies are not kept. */
  dockerNetworkPolicy: NetworkPolicyChoice;
  /** `loop`: the operator accepts that the host's kernel reads file systems that tenants wrote. */
  dockerDiskImages: DiskImageChoice;
  /** An OCI runtime that the daemon knows, such as `runsc`; undefined: the daemon's default. */
  dockerRuntime: string | undefined;
}

export interface OrchestratorConfig {
  /** How long a machine may take to end by itself before it is killed. */
  stopGraceSecs: number;
  /** How long an ephemeral sandbox that has ended stays visible. */
  ephemeralLingerSecs: number;
  /** From placement to running. */
  startTimeoutSecs: number;
  /** From admission to placement. */
  queueTimeoutSecs: number;
  /** From a stop's admission to the machine's end. */
  stopTimeoutSecs: number;
  /** How many vCPUs may be placed for each that the host has. */
  cpuOvercommit: number;
  /** How much memory may be placed for each byte that the host has. */
  memoryOvercommit: number;
  /** How long a machine is kept whose sandbox does not exist. */
  orphanDelaySecs: number;
  /** How often a volume that changes is measured. */
  volumeMeasureSecs: number;
}

export interface OrganizationConfig {
  /** How long audit events are kept; 0: always. */
  eventRetentionDays: number;
}

export interface BillingConfig {
  /** From a hard-capped plan's pool running out to the stop of what runs. */
  poolGraceSecs: number;
}
