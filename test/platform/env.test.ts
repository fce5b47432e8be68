import { resolve } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { generateApiKey } from "../../runtime/api-key.ts";
import { readConfig } from "../../runtime/env.ts";
import { StartupError } from "../../runtime/errors.ts";

test("the defaults are those of the README", () => {
  expect(readConfig({})).toEqual({
    dataDir: resolve("data"),
    databaseUrl: undefined,
    migrate: "on",
    database: { poolSize: 10, queueSize: 2_000 },
    log: { level: "info", format: "auto" },
    tracing: undefined,
    gateway: {
      host: "127.0.0.1",
      port: 8080,
      corsOrigins: [],
      waitsMax: 10_000,
      rateLimit: { perSecond: 1_000, burst: 2_000, redisUrl: undefined },
      logRequests: false,
      trustedProxies: [],
      https: undefined,
    },
    rpc: {
      host: "127.0.0.1",
      port: undefined,
      urls: {
        sandbox: undefined,
        orchestrator: undefined,
        organization: undefined,
        billing: undefined,
      },
      callsMax: 2_000,
      serviceToken: undefined,
      previousServiceToken: undefined,
      tls: undefined,
    },
    admin: { host: "127.0.0.1", port: undefined },
    engine: {
      volumesDir: resolve("data/volumes"),
      choice: "auto",
      dockerHost: undefined,
      dockerNetworkPolicy: "enforced",
      dockerDiskImages: "refused",
      dockerRuntime: undefined,
    },
    orchestrator: {
      stopGraceSecs: 5,
      ephemeralLingerSecs: 30,
      startTimeoutSecs: 600,
      queueTimeoutSecs: 3_600,
      stopTimeoutSecs: 300,
      cpuOvercommit: 16,
      memoryOvercommit: 1,
      orphanDelaySecs: 600,
      volumeMeasureSecs: 60,
    },
    organization: { eventRetentionDays: 0 },
    billing: { poolGraceSecs: 300 },
    bootstrapApiKey: undefined,
    secretsKey: undefined,
    drain: { delaySecs: 0, timeoutSecs: 10 },
  });
});

test("an empty value counts as unset", () => {
  expect(readConfig({ PORT: "", ENGINE: " ", BOOTSTRAP_API_KEY: "" })).toEqual(readConfig({}));
});

const key = Buffer.from(Array.from({ length: 32 }, (_, i) => i * 7));

test.each([
  ["PORT", "0", (c) => c.gateway.port, 0],
  ["HOST", "::1", (c) => c.gateway.host, "::1"],
  ["DATA_DIR", "/srv/sandgate", (c) => c.dataDir, "/srv/sandgate"],
  ["DATABASE_URL", "postgres://h/d", (c) => c.databaseUrl, "postgres://h/d"],
  ["MIGRATE", "off", (c) => c.migrate, "off"],
  ["DATABASE_POOL", "4", (c) => c.database.poolSize, 4],
  ["DATABASE_QUEUE", "0", (c) => c.database.queueSize, 0],
  ["RPC_CALLS_MAX", "100", (c) => c.rpc.callsMax, 100],
  ["ENGINE", "docker", (c) => c.engine.choice, "docker"],
  ["DOCKER_HOST", "unix:///run/d.sock", (c) => c.engine.dockerHost, "unix:///run/d.sock"],
  ["LOG_LEVEL", "debug", (c) => c.log.level, "debug"],
  ["LOG_FORMAT", "json", (c) => c.log.format, "json"],
  ["LOG_REQUESTS", "on", (c) => c.gateway.logRequests, true],
  ["RPC_PORT", "9090", (c) => c.rpc.port, 9090],
  ["ADMIN_PORT", "0", (c) => c.admin.port, 0],
  ["ADMIN_HOST", "0.0.0.0", (c) => c.admin.host, "0.0.0.0"],
  ["RPC_HOST", "0.0.0.0", (c) => c.rpc.host, "0.0.0.0"],
  ["SANDBOX_URL", "http://sandbox:9091", (c) => c.rpc.urls.sandbox, "http://sandbox:9091"],
  ["SERVICE_TOKEN", "0123456789abcdef", (c) => c.rpc.serviceToken, "0123456789abcdef"],
  [
    "SERVICE_TOKEN_PREVIOUS",
    "0123456789abcdef",
    (c) => c.rpc.previousServiceToken,
    "0123456789abcdef",
  ],
  ["SECRETS_KEY", key.toString("hex"), (c) => c.secretsKey, key],
  ["SECRETS_KEY", key.toString("base64"), (c) => c.secretsKey, key],
  [
    "CORS_ORIGINS",
    "https://a.b, http://c:81",
    (c) => c.gateway.corsOrigins,
    ["https://a.b", "http://c:81"],
  ],
  ["RATE_LIMIT_PER_SEC", "0", (c) => c.gateway.rateLimit.perSecond, 0],
  ["REDIS_URL", "redis://r:6379", (c) => c.gateway.rateLimit.redisUrl, "redis://r:6379"],
  ["TRUSTED_PROXIES", "10.0.0.0/8, ::1", (c) => c.gateway.trustedProxies, ["10.0.0.0/8", "::1"]],
  ["EVENT_RETENTION_DAYS", "30", (c) => c.organization.eventRetentionDays, 30],
  ["POOL_GRACE_SECS", "0", (c) => c.billing.poolGraceSecs, 0],
  ["BOOTSTRAP_API_KEY", "msb_0123456789abcdef", (c) => c.bootstrapApiKey, "msb_0123456789abcdef"],
] satisfies [string, string, (c: ReturnType<typeof readConfig>) => unknown, unknown][])(
  "%s=%s",
  (name, value, pick, expected) => {
    expect(pick(readConfig({ [name]: value }))).toEqual(expected);
  },
);

describe("refuses", () => {
  const ours = generateApiKey();
  const misspelt = ours.slice(0, -1) + (ours.endsWith("0") ? "1" : "0");

  test.each([
    ["PORT", "65536"],
    ["PORT", "80.5"],
    ["PORT", "-1"],
    ["HOST", "a b"],
    ["DATABASE_URL", "mysql://h/d"],
    ["ENGINE", "Docker"],
    ["DOCKER_HOST", "/var/run/docker.sock"],
    ["LOG_LEVEL", "loud"],
    ["RPC_PORT", "x"],
    ["SERVICE_TOKEN", "short"],
    ["SERVICE_TOKEN_PREVIOUS", "short"],
    ["SECRETS_KEY", key.subarray(1).toString("base64")],
    ["SECRETS_KEY", "*".repeat(44)],
    ["CORS_ORIGINS", "https://a.b/"],
    ["CORS_ORIGINS", "*"],
    ["BOOTSTRAP_API_KEY", "msb_short"],
    ["BOOTSTRAP_API_KEY", misspelt],
    ["STOP_GRACE_SECS", "soon"],
    ["EPHEMERAL_LINGER_SECS", "-5"],
    ["START_TIMEOUT_SECS", "0"],
    ["QUEUE_TIMEOUT_SECS", "1e3"],
    ["ORPHAN_DELAY_SECS", "-1"],
    ["VOLUME_MEASURE_SECS", "0"],
    ["DRAIN_TIMEOUT_SECS", "9999"],
    ["WAITS_MAX", "many"],
    ["STOP_TIMEOUT_SECS", "0"],
    ["CPU_OVERCOMMIT", "0"],
    ["MEMORY_OVERCOMMIT", "1,5"],
    ["DOCKER_NETWORK_POLICY", "off"],
    ["DOCKER_DISK_IMAGES", "on"],
    ["DOCKER_RUNTIME", "a b"],
    ["RPC_HOST", "a b"],
    ["SANDBOX_URL", "127.0.0.1:9091"],
    ["REDIS_URL", "127.0.0.1:6379"],
    ["REDIS_URL", "redis://:hunter2@127.0.0.1/cache"],
    ["REDIS_URL", "redis://:hunter2%ZZ@127.0.0.1/0"],
    ["TRUSTED_PROXIES", "10.0.0.0/33"],
    ["RATE_LIMIT_BURST", "0"],
  ])("%s=%s, naming it and not its value", (name, value) => {
    const refuse = () => readConfig({ [name]: value });
    expect(refuse).toThrow(StartupError);
    expect(refuse).toThrow(new RegExp(`^${name} must be `));
    if (value.length > 20) expect(refuse).not.toThrow(value);
  });

  test("every bad value at once", () => {
    const refuse = () => readConfig({ PORT: "x", ENGINE: "x", SECRETS_KEY: "x" });
    expect(refuse).toThrow(/^PORT must be .*; ENGINE must be .*; SECRETS_KEY must be .*$/);
  });
});

test("files of TLS go together, and what is missing is named", () => {
  const tls = { TLS_CERT: "/c", TLS_KEY: "/k", TLS_CA: "/ca" };
  expect(readConfig(tls).rpc.tls).toEqual({ prefix: "TLS", cert: "/c", key: "/k", ca: "/ca" });
  expect(() => readConfig({ ...tls, TLS_KEY: "" })).toThrow(
    "TLS_KEY must be set too: TLS_CERT, TLS_KEY, TLS_CA go together",
  );
  expect(() => readConfig({ TLS_CA: "/ca" })).toThrow(/TLS_CERT must .*; TLS_KEY must /);
  const https = { HTTPS_CERT: "/c", HTTPS_KEY: "/k" };
  expect(readConfig(https).gateway.https).toMatchObject({ prefix: "HTTPS", cert: "/c", key: "/k" });
  expect(() => readConfig({ HTTPS_CERT: "/c" })).toThrow("HTTPS_KEY must be set too");
});

test("settings that are printed show no secret, and are what they are", () => {
  const env = {
    DATABASE_URL: "postgresql://u:PLANTED1@127.0.0.1/db",
    REDIS_URL: "redis://:PLANTED2@127.0.0.1",
    SERVICE_TOKEN: "PLANTED3-0123456789",
    SERVICE_TOKEN_PREVIOUS: "PLANTED4-0123456789",
    BOOTSTRAP_API_KEY: generateApiKey(),
    SECRETS_KEY: Buffer.alloc(32, "PLANTED5").toString("base64"),
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=PLANTED6",
  };
  const config = readConfig(env);
  const printed = [config, { config }, config.rpc, config.gateway, config.tracing].flatMap(
    (part) => [inspect(part, { depth: null, showHidden: true }), JSON.stringify(part)],
  );
  for (const text of printed) {
    expect(text).toContain("[secret]");
    for (const secret of ["PLANTED", env.BOOTSTRAP_API_KEY, config.secretsKey?.toString("hex")])
      expect(text).not.toContain(secret);
    expect(text).not.toContain('"data":[');
  }
  expect(config.rpc.serviceToken).toBe(env.SERVICE_TOKEN);
  expect(config.databaseUrl).toBe(env.DATABASE_URL);
  expect(JSON.stringify(readConfig({}))).not.toContain("[secret]");
});
