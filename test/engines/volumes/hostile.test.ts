import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { allActs, fileActs } from "./hostile/acts.ts";
import { attack } from "./hostile/attack.ts";
import { createNaiveFiles } from "./hostile/naive.ts";
import { createWorld, stolen } from "./hostile/world.ts";
import { descriptorsBelow, PATIENT } from "./support.ts";

/** More of them on demand. */
const ROUNDS = Number(process.env.HOSTILE_ROUNDS ?? 4000);
const PATIENCE = 15 * 60_000;

describe.skipIf(process.getuid?.() !== 0)("A volume that its sandboxes change all the time", () => {
  it("is never left", { timeout: PATIENCE }, async () => {
    const world = await createWorld();
    const volumes = createDirectoryVolumes({ root: world.root });

    const { breaches, done } = await attack(world, allActs(volumes, world.key), ROUNDS);

    const rounds = await world.rounds();
    await world.stop();
    expect([...breaches, ...world.harm(), ...stolen(world.inside)]).toEqual([]);
    // It was an attack, and there was something to get.
    for (const [act, { done: often, refused }] of Object.entries(done))
      expect(often, `${act}, refused ${refused} times`).toBeGreaterThan(0);
    expect(Math.min(...rounds)).toBeGreaterThan(1000);
    await expect.poll(() => descriptorsBelow(world.root), PATIENT).toEqual([]);
    const staging = join(world.root, world.key.orgId, world.key.volumeId, "staging");
    expect(await readdir(staging)).toEqual([]);
  });

  it("would be left if paths were checked and then used", { timeout: PATIENCE }, async () => {
    const world = await createWorld();
    const naive = createNaiveFiles(world.inside);

    const { breaches } = await attack(world, fileActs(naive, world.key), 1_000_000, [
      "directory/file",
      "directory/sub/file",
      "link/file",
    ]);

    expect([...breaches, ...world.harm()]).not.toEqual([]);
  });
});
