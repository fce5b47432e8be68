import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, vi } from "vitest";
import { createDeployment, type Deployment } from "./deployment.ts";
import { addOrganization, apiOf, type Program, startProgram } from "./program.ts";
import { createProgramDatabase } from "./program-database.ts";

/** Starts the whole program, in whichever shape. @param env settings beside those that a test needs */
export type StartProgram = (env?: Record<string, string>) => Promise<Program>;

interface Shape {
  shape: string;
  startProgram: StartProgram;
}

const SHAPES: Shape[] = [
  { shape: "one process", startProgram },
  { shape: "every role in a process of its own", startProgram: startRoles },
];

/** A machine with much to do starts five processes slowly. */
const START = { timeout: 110_000, interval: 100 };

/**
 * A flow that has to hold however the roles are spread over processes.
 * @param flow declares its tests, with the program that it starts
 */
export function inBothShapes(name: string, flow: (startProgram: StartProgram) => void): void {
  describe.each(SHAPES)(`${name}, $shape`, { timeout: 60_000 }, (shape) =>
    flow(shape.startProgram),
  );
}

/** Every role in a process of its own, on a database of their own. */
export async function startRoles(env: Record<string, string> = {}): Promise<Program> {
  const database = await createProgramDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-program-"));
  const deployment = await createDeployment({ databaseUrl: database.url, dataDir, env });
  const close = async () => {
    await Promise.all(deployment.all.map((child) => child.stop()));
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  };
  for (const child of deployment.all) child.start();
  await vi.waitUntil(deployment.isReady, START).catch(async (cause) => {
    const said = deployment.all.map((child) => child.output().slice(-1_000)).join("\n");
    await close();
    throw new Error(`the roles did not get ready:\n${said}`, { cause });
  });
  return { ...programOf(deployment, database.url), dataDir, close };
}

function programOf({ url, apiKey, rpc }: Deployment, databaseUrl: string) {
  return {
    url,
    rpc,
    apiKey,
    databaseUrl,
    api: apiOf(url, apiKey),
    addOrganization: (slug: string) => addOrganization(databaseUrl, url, slug),
  };
}
