import { expect, test, vi } from "vitest";
import { Breaker } from "../../runtime/rpc/breaker.ts";

function breakerWith(...answers: boolean[]) {
  const onChange = vi.fn();
  const probe = vi.fn(async () => {
    if (!(answers.shift() ?? true)) throw new Error("no sign of life");
  });
  const breaker = new Breaker({ probe, patienceMs: 0, onChange });
  breaker.suspect();
  return { breaker, probe, onChange };
}

test("one sign of life that did not come cuts nobody off: this process may have stood still itself", async () => {
  const { breaker, probe, onChange } = breakerWith(false, true);
  await expect.poll(() => probe.mock.calls.length).toBe(2);
  expect(breaker.isOpen).toBe(false);
  expect(onChange).not.toHaveBeenCalled();
});

test("a second one does, until there is one", async () => {
  const { breaker, onChange } = breakerWith(false, false, true);
  await expect.poll(() => onChange.mock.calls).toEqual([[true], [false]]);
  expect(() => breaker.check()).not.toThrow();
});
