import Type, { type Static } from "typebox";
import { asRecord, type RuleFault } from "../../../validation/rule.ts";
import { int64, optional, strict, words } from "../../../validation/schema.ts";
import { cidrFault, domainFault, suffixFault } from "./hosts.ts";
import { SecretsInput } from "./secrets.ts";

export const ACTIONS = ["allow", "deny"] as const;
export const DIRECTIONS = ["egress", "ingress", "any"] as const;
export const PROTOCOLS = ["tcp", "udp", "icmpv4", "icmpv6"] as const;
export const GROUPS = [
  "public",
  "loopback",
  "private",
  "link_local",
  "metadata",
  "multicast",
  "host",
] as const;

const kinds = {
  cidr: Type.String({ rule: cidrFault, examples: ["10.0.0.0/8"] }),
  domain: Type.String({ rule: domainFault, examples: ["example.com"] }),
  domain_suffix: Type.String({ rule: suffixFault, examples: ["example.com"] }),
  group: words(GROUPS),
};

const published = Type.Union([
  Type.Literal("any"),
  strict({ cidr: kinds.cidr }),
  strict({ domain: kinds.domain }),
  strict({ domain_suffix: kinds.domain_suffix }),
  strict({ group: kinds.group }),
]);

/** `"any"`, or an object with one field; checked so that a fault is that of the field that is there. */
export const Destination = Type.Unsafe<Static<typeof published>>({
  title: "Destination",
  description:
    "Whom a rule is about: anybody, or one of prefix, name, name with all below it, group.",
  if: { type: "object" },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: {
    properties: kinds,
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
    hint: `must have exactly one of ${Object.keys(kinds).join(", ")}`,
  },
  else: { const: "any" },
  published: { oneOf: published.anyOf },
});
export type Destination = Static<typeof Destination>;

const port = () => Type.Integer({ format: "int32", minimum: 0, maximum: 65_535 });

export const PortRange = strict(
  { start: port(), end: port() },
  { title: "PortRange", description: "Both ends included.", rule: startAboveEnd },
);

export const RuleInput = strict(
  {
    direction: words(DIRECTIONS),
    destination: Destination,
    action: words(ACTIONS),
    ports: optional(Type.Array(PortRange), { description: "Empty: any port.", default: [] }),
    protocols: optional(Type.Array(words(PROTOCOLS)), {
      description: "Empty: any protocol.",
      default: [],
    }),
  },
  { title: "RuleInput" },
);

export const PolicyInput = strict(
  {
    default_egress: optional(words(ACTIONS), { default: "deny" }),
    default_ingress: optional(words(ACTIONS), { default: "deny" }),
    rules: optional(Type.Array(RuleInput), {
      description: "The first that matches a direction decides.",
      default: [],
    }),
  },
  { title: "PolicyInput" },
);

export const NetworkInput = strict(
  {
    enabled: optional(Type.Boolean(), {
      description: "False: no network at all.",
      default: true,
    }),
    policy: optional(PolicyInput, {
      description:
        "Null: ingress allowed; egress to DNS on the host and to the public internet, nothing else.",
      default: null,
    }),
    secrets: optional(SecretsInput, { default: null }),
    max_connections: optional(int64(0), {
      description: "Concurrent connections of the machine.",
      default: null,
    }),
    strict: optional(Type.Boolean(), {
      description: "Refuse a create whose network the engine cannot enforce in full.",
      default: false,
    }),
  },
  { title: "NetworkInput" },
);
export type NetworkInput = Static<typeof NetworkInput>;
export type PolicyInput = Static<typeof PolicyInput>;
export type RuleInput = Static<typeof RuleInput>;

function startAboveEnd(value: unknown): RuleFault[] {
  const { start, end } = asRecord(value) ?? {};
  const above = typeof start === "number" && typeof end === "number" && start > end;
  return above ? [{ at: ["start"], message: "must not be above end" }] : [];
}
