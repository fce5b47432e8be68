import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";

/** A migrated, empty database of one test file's own. */
export interface TestDatabase {
  url: string;
  /** Drops it, cutting connections that are left. */
  close(): Promise<void>;
}

/** Clones the template that global-setup.ts migrated. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(inject("postgres").template);
}

/** A database with nothing in it, not even our tables. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createDatabase("template0");
}

async function createDatabase(template: string): Promise<TestDatabase> {
  const { maintenanceUrl } = inject("postgres");
  const name = `test_${randomBytes(8).toString("hex")}`;
  const run = (sql: string) => withClient(maintenanceUrl, (client) => client.query(sql));
  await run(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = new URL(maintenanceUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    close: async () => {
      await run(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}
