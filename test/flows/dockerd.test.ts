import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { generateApiKey } from "../../runtime/api-key.ts";
import { describeWithDocker } from "../support/docker.ts";
import { DOCKERD } from "../support/docker-daemon.ts";
import { type Api, apiOf } from "../support/program.ts";
import { readOptions } from "./chaos/options.ts";
import { createPeople } from "./chaos/people.ts";
import { type ChaosSystem, startSystem } from "./chaos/system.ts";

// In the shape of chaos, every role a process: what dies here is the daemon.

const SLOW = { timeout: 60_000 };

describeWithDocker("a dockerd that is killed", () => {
  // It has a daemon of its own, so one that answers elsewhere does not help.
  const able = existsSync(DOCKERD) && process.getuid?.() === 0;

  test.skipIf(!able).each([
    ["stay running", "--live-restore", { status: "running", last_failure_message: null }],
    [
      "fail with a reason",
      "--no-live-restore",
      { status: "failed", last_failure_message: expect.stringMatching(/\w/) },
    ],
  ])(
    "its sandboxes %s with %s, and starts wait for it",
    async (_, mode, expected) => {
      const system = await startSystem(readOptions(["--engine", "docker", mode]));
      try {
        await killDaemon(system, expected);
      } finally {
        await system.close();
      }
    },
    180_000,
  );
});

async function killDaemon(system: ChaosSystem, expected: object): Promise<void> {
  const { children, host, engine } = system;
  const {
    clients: [person],
  } = await createPeople(system.databaseUrl, { clients: 1, keepers: 0 });
  const api = apiOf(system.urls[0] ?? "", person?.key ?? generateApiKey());
  const create = (name: string, query = "") =>
    api("POST", `/v1/sandboxes?start=true${query}`, { ...host.spec, name });
  const kept = await create("kept", "&wait_for=running");
  expect(kept.body.status).toBe("running");
  await children.engine.kill();
  expect((await create("late")).body.status).toBe("starting");
  expect(await read(api, "kept")).toMatchObject({ status: "running" });
  children.engine.start();
  await expect.poll(() => read(api, "kept"), SLOW).toMatchObject(expected);
  await expect.poll(() => read(api, "late"), SLOW).toMatchObject({ status: "running" });
  const up = (await engine.list()).filter(({ state }) => state === "running");
  const names = (await api("GET", "/v1/sandboxes?status=running")).body.data;
  expect(up.map(({ sandboxId }) => sandboxId).sort()).toEqual(
    names.map(({ id }: { id: string }) => id).sort(),
  );
}

const read = async (api: Api, name: string) =>
  (await api("GET", `/v1/sandboxes/by-name/${name}`)).body;
