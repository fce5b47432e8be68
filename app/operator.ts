import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { type Database, openDatabase } from "../prisma/database.ts";
import { readMigrationState } from "../prisma/migration-state.ts";
import { BillingService } from "../proto/gen/billing/v1/billing_service_pb.ts";
import { OrganizationService } from "../proto/gen/organization/v1/organization_service_pb.ts";
import type { Config } from "../runtime/config.ts";
import { prepareDataDir, readSecretFile } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { reachPostgres } from "../runtime/postgres/reach.ts";
import { createRemoteTransport } from "../runtime/rpc/client.ts";
import { createInProcessTransport } from "../runtime/rpc/in-process.ts";
import { createSecrets } from "../runtime/secrets.ts";
import { createBillingService } from "../services/billing/service.ts";
import { createStore as createBillingStore } from "../services/billing/store.ts";
import { createKeyWatch } from "../services/organization/key-watch.ts";
import { createOrganizationService } from "../services/organization/service.ts";
import { listenForKeys } from "../services/organization/store/listen.ts";
import { createStore as createOrganizationStore } from "../services/organization/store.ts";
import { provideDatabase } from "./database.ts";
import { Needs } from "./readiness.ts";
import { tokenFileOf } from "./rpc.ts";
import { provideSchema } from "./schema.ts";
import { provideTls, refusePlain } from "./tls.ts";

/** What an operator works with. */
export interface OperatorClients {
  organizations: Client<typeof OrganizationService>;
  billing: Client<typeof BillingService>;
}

export interface OperatorOptions {
  config: Config;
  log: Logger;
  /** Knows afterwards how to end everything. */
  lifecycle: Lifecycle;
}

const POOL_SIZE = 2;

/**
 * The services on the program's database, in this process. A running program's own PostgreSQL is shared; where none
 * runs, one is started. No organization and no key is made by that.
 * @throws StartupError
 */
export async function openInProcess(options: OperatorOptions): Promise<OperatorClients> {
  return inProcessServices(await openOperatorDatabase(options), options);
}

interface OpenDatabase {
  database: Database;
  url: string;
}

/** Handlers alone: what services do in the background is the program's. */
async function inProcessServices(
  { database, url }: OpenDatabase,
  { log, lifecycle }: OperatorOptions,
): Promise<OperatorClients> {
  const onError = (error: unknown) => log.error({ err: error }, "keys are not watched");
  // It connects when somebody watches.
  const keyWatch = await lifecycle.start("key watch", {
    start: () => createKeyWatch((ears) => listenForKeys(url, ears), onError),
    end: (watch) => watch.stop(),
  });
  // Cursors are used in the process that made them.
  const secrets = createSecrets(randomBytes(32));
  const organization = createOrganizationService({
    store: createOrganizationStore(database),
    sign: (data) => secrets.hmac("cursor", data),
    keyWatch,
  });
  const billing = createBillingService({ store: createBillingStore(database) });
  const transport = createInProcessTransport(
    (router) => {
      router.service(OrganizationService, organization);
      router.service(BillingService, billing);
    },
    { log },
  );
  return {
    organizations: createClient(OrganizationService, transport),
    billing: createClient(BillingService, transport),
  };
}

/** Up to date and open, by the rules of the program. */
async function openOperatorDatabase(options: OperatorOptions): Promise<OpenDatabase> {
  const { config, lifecycle } = options;
  // The next statement says so itself.
  const onCrash = () => {};
  if (config.databaseUrl !== undefined)
    return provideDatabase({ ...options, onCrash, needs: new Needs(lifecycle), waitsFor: [] });
  await prepareDataDir(config.dataDir);
  const server = await lifecycle.start("PostgreSQL", {
    start: () => reachPostgres(join(config.dataDir, "postgres")),
    end: (reached) => reached.release(),
    always: true,
  });
  await (server.foreign
    ? requireSameVersion(server.url)
    : provideSchema(server.url, config.migrate, options.log));
  const database = await lifecycle.start("database", {
    start: () => openDatabase(server.url, { poolSize: POOL_SIZE }),
    end: (opened) => opened.close(),
  });
  return { database, url: server.url };
}

// Who migrates under a running program breaks it.
async function requireSameVersion(url: string): Promise<void> {
  const { due, faults } = await readMigrationState(url);
  const [fault] = faults;
  if (fault !== undefined) throw new StartupError(fault);
  if (due.length > 0)
    throw new StartupError(
      "The Sandgate that runs here is of an older version than this command: restart it",
    );
}

/** Where services take calls. */
export interface RemoteOptions extends OperatorOptions {
  /** Of a program that runs all roles, or of the organization role. */
  url: string;
  /** Of the billing role, where that runs alone. */
  billingUrl: string | undefined;
}

/**
 * The services of a running program, through its RPC port.
 * @throws StartupError where there is neither a service token nor a certificate
 */
export async function openRemote(options: RemoteOptions): Promise<OperatorClients> {
  const { config, lifecycle, url, billingUrl = url } = options;
  refusePlain(config, "--server", url);
  refusePlain(config, "--billing-server", billingUrl);
  const token = await findToken(config);
  const tls = await provideTls(options);
  const connect = (baseUrl: string) =>
    lifecycle.start(`connection to ${baseUrl}`, {
      start: () => createRemoteTransport({ baseUrl, token, tls }),
      end: (connected) => connected.close(),
    });
  const transport = await connect(url);
  return {
    organizations: createClient(OrganizationService, transport),
    billing: createClient(
      BillingService,
      billingUrl === url ? transport : await connect(billingUrl),
    ),
  };
}

/**
 * The token of whoever runs already: none is made here.
 * @returns undefined where a certificate does instead
 * @throws StartupError where there is neither
 */
export async function findToken(config: Config): Promise<string | undefined> {
  const token = config.rpc.serviceToken ?? (await readSecretFile(tokenFileOf(config)));
  if (token || config.rpc.tls) return token;
  throw new StartupError(
    `There is no service token: set SERVICE_TOKEN, or DATA_DIR to the folder of the program (${tokenFileOf(config)} is not there)`,
  );
}
