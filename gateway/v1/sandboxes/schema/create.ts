import Type, { type Static } from "typebox";
import { mapOf, optional, text, words } from "../../../validation/schema.ts";
import {
  EnvVarInput,
  LifecycleInput,
  PULL_POLICIES,
  ResourcesInput,
  RlimitInput,
  SECURITY_PROFILES,
} from "./basics.ts";
import { Image, imageFaults, OciReference } from "./image.ts";
import { labelFaults } from "./keys.ts";
import { MountsInput } from "./mounts.ts";
import { NetworkInput } from "./network.ts";
import { PatchInput } from "./patches.ts";
import { RegistryInput } from "./registry.ts";
import { InitInput, RuntimeInput } from "./runtime.ts";

const NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}";
const NAME_HINT = "must be 1 to 128 of A-Z a-z 0-9 . _ -, the first a letter or a digit";

/** Names that a sandbox can have; no other can be found. */
export const SANDBOX_NAME = new RegExp(`^${NAME}$`);

const Slug = Type.String({
  pattern: "^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$",
  hint: "must be 3 to 63 of a-z, 0-9 and single inner hyphens",
});

export const CreateSandboxRequest = Type.Object(
  {
    name: optional(Type.String({ pattern: `^(${NAME})?$`, hint: NAME_HINT }), {
      description: "Unique in the organization; empty: the slug.",
      default: "",
    }),
    slug: optional(Slug, { description: "Unique everywhere; null: generated." }),
    image: Type.Optional(Image),
    source: optional(words(["oci"]), {
      description: "With `reference`, an older form of `image`.",
    }),
    reference: optional(OciReference, { description: "With `source`, an older form of `image`." }),
    env: optional(Type.Array(EnvVarInput), {
      description: "Of a repeated key the last wins.",
      default: [],
    }),
    labels: optional(mapOf(text(), { rule: labelFaults }), {
      description:
        "At most 64, keys to 128 bytes, values to 1024; the prefixes `sandbox.`, `microsandbox.` and `service.` are reserved.",
      default: {},
    }),
    resources: optional(ResourcesInput),
    runtime: optional(RuntimeInput),
    rlimits: optional(Type.Array(RlimitInput), {
      description: "Of a repeated resource the last wins.",
      default: [],
    }),
    mounts: optional(MountsInput, { default: [] }),
    network: optional(NetworkInput),
    patches: optional(Type.Array(PatchInput), {
      description: "Applied in order before the first start.",
      default: [],
    }),
    init: optional(InitInput, { default: null }),
    pull_policy: optional(words(PULL_POLICIES), { default: "if_missing" }),
    security_profile: optional(words(SECURITY_PROFILES), { default: "default" }),
    lifecycle: optional(LifecycleInput),
    registry: optional(RegistryInput, { default: { mode: "auto" } }),
  },
  {
    title: "CreateSandboxRequest",
    description:
      "`image` is required; clients of the 0.7 line send `source` and `reference` in its place.",
    rule: imageFaults,
  },
);
export type CreateSandboxRequest = Static<typeof CreateSandboxRequest>;

export const UpdateSandboxRequest = Type.Object(
  {
    name: optional(Type.String({ pattern: `^${NAME}$`, hint: NAME_HINT }), {
      description: "Null or absent: unchanged.",
    }),
    slug: optional(Slug, { description: "Null or absent: unchanged." }),
  },
  { title: "UpdateSandboxRequest" },
);
export type UpdateSandboxRequest = Static<typeof UpdateSandboxRequest>;
