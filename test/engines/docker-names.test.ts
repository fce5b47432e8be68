import { describe, expect, it } from "vitest";
import {
  familiar,
  parseReference,
} from "../../services/orchestrator/engines/docker/images/reference.ts";
import {
  formatName,
  hostnameOf,
  parseName,
} from "../../services/orchestrator/engines/docker/names.ts";

const ID = "01a1fd59-a5c7-751d-a272-b30bcc3e83b3";
const DIGEST = `sha256:${"0".repeat(64)}`;

describe("a container's name", () => {
  it.each([
    [{ sandboxId: ID, generation: 1, after: null }, `sbx-${ID}-1`],
    [{ sandboxId: ID, generation: 12, after: 1795251374058 }, `sbx-${ID}-12-after-1795251374058`],
  ])("%o is %s, and back", (name, text) => {
    expect(formatName(name)).toBe(text);
    expect(parseName(text)).toEqual(name);
    expect(parseName(`/${text}`)).toEqual(name);
  });

  it.each(["", "sbx-", `sbx-${ID}`, `${ID}-1`, `sbx-${ID}-1-after-`, `my-sbx-${ID}-1`])(
    "'%s' is none of ours",
    (text) => {
      expect(parseName(text)).toBeUndefined();
    },
  );
});

describe("a host name", () => {
  it.each([
    ["brave-otter-42", "brave-otter-42"],
    ["My_Box.v2-", "my-box-v2"],
    ["a.-b.._.c", "a-b-c"],
    ["api.example.com", "api-example-com"],
    ["9", "9"],
    [`${"a".repeat(62)}-bcd`, "a".repeat(62)],
    ["x".repeat(128), "x".repeat(63)],
  ])("of '%s' is '%s'", (name, hostname) => {
    expect(hostnameOf(name)).toBe(hostname);
  });
});

describe("an image reference", () => {
  it.each([
    ["busybox", "docker.io", "busybox:latest"],
    ["library/busybox:1.36", "docker.io", "busybox:1.36"],
    ["docker.io/library/busybox", "docker.io", "busybox:latest"],
    ["index.docker.io/team/app:1", "docker.io", "team/app:1"],
    ["team/app", "docker.io", "team/app:latest"],
    ["localhost/app", "localhost", "localhost/app:latest"],
    ["localhost:5000/app", "localhost:5000", "localhost:5000/app:latest"],
    ["ghcr.io/a/b/c:v1", "ghcr.io", "ghcr.io/a/b/c:v1"],
    [`ghcr.io/a/b@${DIGEST}`, "ghcr.io", `ghcr.io/a/b@${DIGEST}`],
    [`busybox:1.36@${DIGEST}`, "docker.io", `busybox@${DIGEST}`],
  ])("%s is at %s as %s", (text, host, name) => {
    const reference = parseReference(text);
    expect(reference).toMatchObject({ text, host });
    expect(familiar(reference)).toBe(name);
  });
});
