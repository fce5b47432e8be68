import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { never, temporary } from "./support.ts";

/** What a sandbox that goes on to write makes of a removal: it takes for ever, or fails. */
let removals: PromiseWithResolvers<void>[] = [];
vi.mock(
  import("../../../services/orchestrator/engines/volumes/remove-tree.ts"),
  async (original) => ({
    ...(await original()),
    removeTree: () => {
      const removal = Promise.withResolvers<void>();
      removals.push(removal);
      return removal.promise;
    },
  }),
);

it("what cannot be cleared away keeps a volume from being measured neither while it is tried nor after", async () => {
  removals = [];
  const volumes = createDirectoryVolumes({ root: await temporary(), cleaningMs: 1 });
  const key = { orgId: randomUUID(), volumeId: randomUUID() };
  const inside = await volumes.directory(key);
  await writeFile(join(inside, "f"), "x");
  await mkdir(join(inside, "..", "staging", "removed-x"));
  const held = { bytes: 1n, entries: 1 };

  expect(await volumes.measure(key, never)).toEqual(held);
  await expect.poll(() => removals.length).toBe(1);
  expect(await volumes.measure(key, never)).toEqual(held);
  expect(removals.length).toBe(1);
  removals[0]?.reject(Object.assign(new Error("EBUSY"), { code: "EBUSY", syscall: "rmdir" }));
  await expect
    .poll(async () => [await volumes.measure(key, never), removals.length])
    .toEqual([held, 2]);
  removals[1]?.resolve();
});

it("a large volume is measured beside a small one, and does not hold it up", async () => {
  const volumes = createDirectoryVolumes({ root: await temporary() });
  const [large, small] = [0, 1].map(() => ({ orgId: randomUUID(), volumeId: randomUUID() }));
  if (!large || !small) throw new Error("there are two");
  const inside = await volumes.directory(large);
  await writeFile(join(await volumes.directory(small), "f"), "x");
  for (let i = 0; i < 100; i += 1) await mkdir(join(inside, `${i}`, "below"), { recursive: true });
  const ended: string[] = [];

  const both = [
    volumes.measure(large, never).then(() => ended.push("large")),
    volumes.measure(small, never).then(() => ended.push("small")),
  ];
  await Promise.all(both);

  expect(ended).toEqual(["small", "large"]);
});
