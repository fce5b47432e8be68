import { join, resolve } from "node:path";
import { API_KEY_FORM, isApiKey } from "./api-key.ts";
import { conceal } from "./conceal.ts";
import {
  type Config,
  DISK_IMAGE_CHOICES,
  ENGINE_CHOICES,
  LOG_FORMATS,
  LOG_LEVELS,
  MIGRATE_CHOICES,
  NETWORK_POLICY_CHOICES,
} from "./config.ts";
import { EnvReader } from "./env-reader.ts";
import { StartupError } from "./errors.ts";
import { readTracing } from "./tracing/env.ts";

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
