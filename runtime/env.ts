import { join, resolve } from "node:path";
import { API_KEY_FORM, isApiKey } from "./api-key.ts";
import { conceal } from "./conceal.ts";
import { EnvReader } from "./env-reader.ts";
import { StartupError } from "./errors.ts";
import { readTracing, type TracingConfig } from "./tracing/env.ts";

export type { TracingConfig };

import type { TlsFiles } from "./tls/certificate.ts";

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

/**
 * Reads the environment, once. An empty value counts as unset.
 * @throws StartupError naming every variable that does not fit
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const read = new EnvReader(env);
  const dataDir = resolve(read.text("DATA_DIR") ?? "data");
  const config: Config = {
    dataDir,
    databaseUrl: read.url("DATABASE_URL", ["postgresql:", "postgres:"]),
    migrate: read.choice("MIGRATE", MIGRATE_CHOICES, "on"),
    database: {
      poolSize: read.integer("DATABASE_POOL", 1, 1_000) ?? 10,
      queueSize: read.integer("DATABASE_QUEUE", 0, 100_000) ?? 2_000,
    },
    log: {
      level: read.choice("LOG_LEVEL", LOG_LEVELS, "info"),
      format: read.choice("LOG_FORMAT", LOG_FORMATS, "auto"),
    },
    tracing: readTracing(read),
    gateway: {
      host: host(read, "HOST"),
      port: read.integer("PORT", 0, 65_535) ?? 8080,
      corsOrigins: read.origins("CORS_ORIGINS"),
      waitsMax: read.integer("WAITS_MAX", 0, 1_000_000) ?? 10_000,
      rateLimit: {
        perSecond: read.integer("RATE_LIMIT_PER_SEC", 0, 1_000_000) ?? 1_000,
        burst: read.integer("RATE_LIMIT_BURST", 1, 1_000_000) ?? 2_000,
        redisUrl: read.redisUrl("REDIS_URL"),
      },
      logRequests: read.choice("LOG_REQUESTS", ["off", "on"], "off") === "on",
      trustedProxies: read.addresses("TRUSTED_PROXIES"),
      https: read.tlsFiles("HTTPS", ["CERT", "KEY"]),
    },
    rpc: {
      host: host(read, "RPC_HOST"),
      port: read.integer("RPC_PORT", 0, 65_535),
      urls: {
        sandbox: read.url("SANDBOX_URL", ["http:", "https:"]),
        orchestrator: read.url("ORCHESTRATOR_URL", ["http:", "https:"]),
        organization: read.url("ORGANIZATION_URL", ["http:", "https:"]),
        billing: read.url("BILLING_URL", ["http:", "https:"]),
      },
      callsMax: read.integer("RPC_CALLS_MAX", 1, 2_000) ?? 2_000,
      serviceToken: token(read, "SERVICE_TOKEN"),
      previousServiceToken: token(read, "SERVICE_TOKEN_PREVIOUS"),
      tls: read.tlsFiles("TLS", ["CERT", "KEY", "CA"]),
    },
    admin: { host: host(read, "ADMIN_HOST"), port: read.integer("ADMIN_PORT", 0, 65_535) },
    engine: {
      volumesDir: resolve(read.text("VOLUMES_DIR") ?? join(dataDir, "volumes")),
      choice: read.choice("ENGINE", ENGINE_CHOICES, "auto"),
      dockerHost: read.url("DOCKER_HOST", ["unix:", "tcp:", "http:", "https:"]),
      dockerNetworkPolicy: read.choice("DOCKER_NETWORK_POLICY", NETWORK_POLICY_CHOICES, "enforced"),
      dockerDiskImages: read.choice("DOCKER_DISK_IMAGES", DISK_IMAGE_CHOICES, "refused"),
      dockerRuntime: read.match(
        "DOCKER_RUNTIME",
        (text) => /^[\w.-]+$/.test(text),
        "the name of an OCI runtime that the Docker daemon knows",
      ),
    },
    orchestrator: {
      stopGraceSecs: read.integer("STOP_GRACE_SECS", 0, 3_600) ?? 5,
      ephemeralLingerSecs: read.integer("EPHEMERAL_LINGER_SECS", 0, 86_400) ?? 30,
      startTimeoutSecs: read.integer("START_TIMEOUT_SECS", 1, 86_400) ?? 600,
      queueTimeoutSecs: read.integer("QUEUE_TIMEOUT_SECS", 1, 604_800) ?? 3_600,
      stopTimeoutSecs: read.integer("STOP_TIMEOUT_SECS", 1, 86_400) ?? 300,
      cpuOvercommit: read.decimal("CPU_OVERCOMMIT", 0.1, 1_000) ?? 16,
      memoryOvercommit: read.decimal("MEMORY_OVERCOMMIT", 0.1, 1_000) ?? 1,
      orphanDelaySecs: read.integer("ORPHAN_DELAY_SECS", 0, 604_800) ?? 600,
      volumeMeasureSecs: read.integer("VOLUME_MEASURE_SECS", 1, 86_400) ?? 60,
    },
    organization: {
      eventRetentionDays: read.integer("EVENT_RETENTION_DAYS", 0, 36_500) ?? 0,
    },
    billing: { poolGraceSecs: read.integer("POOL_GRACE_SECS", 0, 604_800) ?? 300 },
    bootstrapApiKey: read.match("BOOTSTRAP_API_KEY", isApiKey, API_KEY_FORM),
    secretsKey: read.key("SECRETS_KEY", 32),
    drain: {
      delaySecs: read.integer("DRAIN_DELAY_SECS", 0, 3_600) ?? 0,
      timeoutSecs: read.integer("DRAIN_TIMEOUT_SECS", 0, 3_600) ?? 10,
    },
  };
  if (read.faults.length > 0) throw new StartupError(read.faults.join("; "));
  return concealSecrets(config);
}

/** Whatever prints settings does not print these. */
function concealSecrets(config: Config): Config {
  if (config.tracing) conceal(config.tracing, "headers");
  conceal(config.gateway.rateLimit, "redisUrl");
  conceal(config.rpc, "serviceToken", "previousServiceToken");
  return conceal(config, "databaseUrl", "bootstrapApiKey", "secretsKey");
}

function host(read: EnvReader, name: string): string {
  const isHost = (text: string) => /^[\w.:-]+$/.test(text);
  return read.match(name, isHost, "a host name or an IP address") ?? "127.0.0.1";
}

function token(read: EnvReader, name: string): string | undefined {
  const isToken = (text: string) => /^[\x21-\x7e]{16,}$/.test(text);
  return read.match(name, isToken, "at least 16 printable ASCII characters");
}
