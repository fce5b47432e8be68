import Type, { type Static } from "typebox";
import type { RuleFault } from "../../../validation/rule.ts";
import { asRecord } from "../../../validation/rule.ts";
import { text, words } from "../../../validation/schema.ts";

// The grammar of the OCI distribution reference: [host[:port]/]path[:tag][@digest].
const HOST_PART = "(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])";
const HOST = `(?:${HOST_PART}(?:\\.${HOST_PART})*|\\[[0-9A-Fa-f:]+\\])(?::[0-9]+)?`;
const PATH_PART = "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*";
const NAME = `(?:${HOST}/)?${PATH_PART}(?:/${PATH_PART})*`;
const DIGEST = "(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})";
const REFERENCE = new RegExp(`^(${NAME})(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@${DIGEST})?$`);
const MAX_NAME = 255;

export const OciReference = text({
  description: "OCI image reference, kept as it is written.",
  rule: referenceFault,
  examples: ["docker.io/library/alpine:3.20"],
});

export const Image = Type.Object(
  { type: words(["oci"], { description: "Kind of image." }), reference: OciReference },
  { title: "Image", description: "What the sandbox's root file system is made from." },
);
export type Image = Static<typeof Image>;

function referenceFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  // Bounded first: what follows is then quick whatever is sent.
  const name = value.length <= 1024 ? REFERENCE.exec(value)?.[1] : undefined;
  return name && name.length <= MAX_NAME ? undefined : "must be a valid OCI image reference";
}

/** A create names its image as `image`, or as older clients do, as `source` and `reference`. */
export function imageFaults(value: unknown): RuleFault[] {
  const body = asRecord(value);
  if (!body) return [];
  const has = (key: string) => Object.hasOwn(body, key) && body[key] !== null;
  const older = ["source", "reference"].filter(has);
  if (Object.hasOwn(body, "image"))
    return older.map((key) => ({ at: [key], message: "is given beside image" }));
  if (older.length === 0) return [{ at: ["image"], message: "is required" }];
  const missing = ["source", "reference"].filter((key) => !has(key));
  return missing.map((key) => ({ at: [key], message: "is required" }));
}
