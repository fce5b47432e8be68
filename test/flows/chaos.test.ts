import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { DOCKERD } from "../support/docker-daemon.ts";
import { runChaos } from "./chaos/chaos.ts";
import { readOptions } from "./chaos/options.ts";

// `npm run chaos` in short; CHAOS_SEED repeats a run. Every role is a process, so that each can be killed alone; one process that is
// killed is in commands.test.ts and test/cli.
const SEED = process.env.CHAOS_SEED ?? "20261121";

const run = (...args: string[]) =>
  runChaos(readOptions(["--seed", SEED, ...args]), (line) => console.log(line));

test(`processes are killed while clients work (seed ${SEED}): nothing is lost, nothing doubled`, async () => {
  const { faults, journal, dealt } = await run("--kills", "8");
  expect(faults).toEqual([]);
  expect(dealt.filter(({ kind }) => kind === "kill")).toHaveLength(8);
  expect(journal.attempts.filter(({ outcome }) => outcome === "acked").length).toBeGreaterThan(20);
}, 300_000);

describeWithDocker("with a dockerd that is killed too", () => {
  // It has a daemon of its own, so one that answers elsewhere does not help.
  const able = existsSync(DOCKERD) && process.getuid?.() === 0;
  test.skipIf(!able).each([
    ["containers outlive it", "--live-restore"],
    ["containers are lost with it", "--no-live-restore"],
  ])(
    "%s: nothing is lost, nothing doubled",
    async (_, mode) => {
      const { faults, journal } = await run("--kills", "2", "--engine", "docker", mode);
      expect(faults).toEqual([]);
      expect(journal.attempts.filter(({ outcome }) => outcome === "acked").length).toBeGreaterThan(
        2,
      );
    },
    240_000,
  );
});
