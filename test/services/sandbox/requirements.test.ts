import { expect, test } from "vitest";
import {
  FEATURES,
  patchRequirements,
  unsupported,
} from "../../../services/sandbox/domain/requirements.ts";
import type { Patch } from "../../../services/sandbox/domain/spec.ts";

const mkdir: Patch = { kind: "mkdir", path: "/a", mode: null };
const copy: Patch = { kind: "copy_file", src: "/a", dst: "/b", mode: null, replace: false };

test("patches that copy ask for more than others, at the first of them", () => {
  expect(patchRequirements([])).toEqual([]);
  expect(patchRequirements([mkdir])).toEqual([{ feature: "patches", field: "patches" }]);
  const needs = patchRequirements([mkdir, copy, copy]);
  expect(unsupported(needs, ["patches"])).toEqual([
    {
      field: "patches[1]",
      message: "copies from the host volume, which this deployment's engine cannot read",
    },
  ]);
  expect(unsupported(needs, FEATURES)).toEqual([]);
});

test.each(FEATURES)(
  "%s is refused in a sentence that goes on after the field's name",
  (feature) => {
    const [fault] = unsupported([{ feature, field: "x" }], []);
    expect(fault?.message).toMatch(/^(is|cannot|copies|limits) .*[^.]$/);
  },
);
