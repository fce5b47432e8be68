import type { FieldFault } from "../../../runtime/errors.ts";
import type { SandboxSpec } from "./spec.ts";

/** Every read carries the spec, and a list a hundred of them. */
const MOST_BYTES = 1024 * 1024;
const PARTS = ["env", "runtime", "labels", "mounts", "network", "init"] as const;

/** A spec that is too large to be answered with, at its largest part. Patches do not count. Pure. */
export function sizeFaults(spec: SandboxSpec): FieldFault[] {
  if (bytesOf(spec) <= MOST_BYTES) return [];
  const sizes = PARTS.map((field) => ({ field, bytes: bytesOf(spec[field]) }));
  const { field } = sizes.reduce((most, part) => (part.bytes > most.bytes ? part : most));
  return [{ field, message: "is too large: all but patches may take 1 MiB together" }];
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
