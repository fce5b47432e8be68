import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

interface Lockfile {
  packages: Record<string, { optionalDependencies?: Record<string, string> }>;
}

// npm leaves out the other platforms' packages when the registry it was run against has them not, or
// when only this platform's are installed; `npm ci` then fails, everywhere.
test("the lock file knows every platform's packages", async () => {
  const { packages }: Lockfile = JSON.parse(await readFile("package-lock.json", "utf8"));
  const optional = Object.values(packages).flatMap((entry) =>
    Object.keys(entry.optionalDependencies ?? {}),
  );
  const isLocked = (name: string) =>
    Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`));
  expect(optional.length).toBeGreaterThan(20);
  expect(optional.filter((name) => !isLocked(name))).toEqual([]);
});
