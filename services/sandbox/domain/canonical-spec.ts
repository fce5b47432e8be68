import type { EnvVar, Mount, Rlimit, SandboxSpec } from "./spec.ts";

/**
 * The one form in which a valid spec is stored: of a repeated key the last wins, mount points are canonical. Mounts stay in
 * the order in which they were asked for, so that what is wrong with one later still names the request's. Pure.
 */
export function canonicalSpec(spec: SandboxSpec): SandboxSpec {
  return {
    ...spec,
    env: lastOfEach<EnvVar>(spec.env, ({ key }) => key),
    rlimits: lastOfEach<Rlimit>(spec.rlimits, ({ resource }) => resource),
    mounts: spec.mounts.map(canonicalMount),
  };
}

/** As a spec is shown: parents before children. Pure. */
export function inOrder(spec: SandboxSpec): SandboxSpec {
  return spec.mounts.length > 1 ? { ...spec, mounts: spec.mounts.toSorted(byGuest) } : spec;
}

function lastOfEach<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}

function canonicalMount(mount: Mount): Mount {
  return { ...mount, guest: canonicalPath(mount.guest) };
}

/** `/a//b/./c/` is `/a/b/c`. */
export function canonicalPath(path: string): string {
  return `/${path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/")}`;
}

// A parent's path is a prefix of its children's, so plain order puts it first.
function byGuest(a: Mount, b: Mount): number {
  return a.guest < b.guest ? -1 : a.guest > b.guest ? 1 : 0;
}
