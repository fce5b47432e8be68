import { expect, test } from "vitest";
import { between } from "../../bench/compare/report.ts";
import { percentile } from "../../bench/support/measure.ts";

const hundred = Array.from({ length: 100 }, (_, at) => 100 - at);

test.each([
  [0.5, 50],
  [0.99, 99],
  [1, 100],
])("the share %d of a hundred values is at most %d", (share, value) => {
  expect(percentile([...hundred], share)).toBe(value);
});

test("of one value every share is that one, of none there is none", () => {
  expect(percentile([7], 0.01)).toBe(7);
  expect(percentile([], 0.99)).toBeNaN();
});

test("new lines take the place of old ones, and what stands around them stays", () => {
  const [begin, end] = ["<!-- npm run bench begins -->", "<!-- npm run bench ends -->"];
  const once = between(`# A\n\n${begin}\nold\n${end}\n\n# B\n`, ["new"]);
  expect(once).toBe(`# A\n\n${begin}\n\nnew\n\n${end}\n\n# B\n`);
  expect(between(once, ["new"])).toBe(once);
  expect(() => between("# A\n", ["new"])).toThrow("no lines");
});
