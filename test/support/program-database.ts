import { withClient } from "../../runtime/postgres/connect.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** A database for a program that may share a Docker daemon with others: they are told apart by it, and a clone has its template's. */
export async function createProgramDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await withClient(database.url, (client) =>
    client.query("UPDATE orchestrator.installation SET id = gen_random_uuid()"),
  );
  return database;
}
