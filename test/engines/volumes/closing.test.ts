import { mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { Layout } from "../../../services/orchestrator/engines/volumes/layout.ts";
import type { OpenVolume } from "../../../services/orchestrator/engines/volumes/open-volumes.ts";
import { remove } from "../../../services/orchestrator/engines/volumes/remove.ts";
import { createVolume, never } from "./support.ts";

const TURNS = 200;

test("what a directory lies in stays open until it is removed: its number is nobody else's meanwhile", async () => {
  const { root, key, put, inside } = await createVolume();
  await put("dir/sub/file", "ours");
  const other = join(root, "other");
  await mkdir(join(other, "sub"), { recursive: true });
  await using volume = await new Layout(root).open(key);
  // Slow, while somebody takes every number that is closed.
  const staging = async () => {
    for (let i = 0; i < TURNS; i += 1) {
      const taker = await open(other);
      onTestFinished(() => taker.close());
      await turn();
    }
    return volume.staging();
  };
  const slow: OpenVolume = { ...volume, staging };
  await remove(slow, "dir/sub", true, never);
  expect(await readdir(other)).toEqual(["sub"]);
  expect(await readdir(join(inside, "dir"))).toEqual([]);
});
