import { expect, test } from "vitest";
import { generateSlug } from "../../../services/sandbox/domain/slug.ts";

test("a generated slug fits the rule for slugs, and hardly ever repeats", () => {
  const slugs = Array.from({ length: 1_000 }, generateSlug);
  for (const slug of slugs) expect(slug).toMatch(/^[a-z]+-[a-z]+-\d{2,4}$/);
  expect(new Set(slugs).size).toBeGreaterThan(990);
});
