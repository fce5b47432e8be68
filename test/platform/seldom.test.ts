import { expect, test } from "vitest";
import { seldom } from "../../runtime/seldom.ts";

function create() {
  const lines: unknown[][] = [];
  const clock = { now: 0 };
  const say = seldom(
    (error, unsaid) => lines.push([String(error), unsaid]),
    () => clock.now,
  );
  return { say, lines, clock };
}

test("the same error is said once a minute, with how often it was not", () => {
  const { say, lines, clock } = create();
  for (; clock.now < 120_000; clock.now += 1_000) say(new Error("away"));
  expect(lines).toEqual([
    ["Error: away", {}],
    ["Error: away", { unsaid: 59 }],
  ]);
});

test("another error is said at once, and the first one is still known", () => {
  const { say, lines } = create();
  for (const word of ["away", "full", "away", "full"]) say(new Error(word));
  expect(lines.map(([text]) => text)).toEqual(["Error: away", "Error: full"]);
});

test("however many errors there are, they are not all remembered", () => {
  const { say, lines } = create();
  for (let i = 0; i < 100; i += 1) say(new Error(String(i)));
  say(new Error("one more"));
  say(new Error("0"));
  expect(lines).toHaveLength(102);
});
