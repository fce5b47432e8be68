import type { Config } from "../runtime/config.ts";
import { StartupError } from "../runtime/errors.ts";
import { provideDatabase } from "./database.ts";
import type { RoleOptions } from "./roles.ts";

/**
 * The database that a role shares with the others, none of its own; it is waited for.
 * @throws StartupError
 */
export async function requireDatabase(options: RoleOptions) {
  if (options.config.databaseUrl === undefined)
    throw new StartupError("A role that runs alone needs DATABASE_URL: the one database of all");
  return provideDatabase({ ...options, waitsFor: ["database", "schema"] });
}

/** @throws StartupError where a service would not listen */
export function requirePort({ rpc }: Config): void {
  if (rpc.port === undefined)
    throw new StartupError("A service that runs alone needs RPC_PORT: where the others reach it");
}
