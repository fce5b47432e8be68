import Type, { type Static } from "typebox";
import { optional, strict, tagged, text } from "../../../validation/schema.ts";
import { hostFault, wildcardFault } from "./hosts.ts";
import { variableFault } from "./keys.ts";

export const HostPattern = tagged(
  "type",
  [
    strict(
      { type: Type.Literal("exact"), value: Type.String({ rule: hostFault }) },
      { title: "ExactHost" },
    ),
    strict(
      { type: Type.Literal("wildcard"), value: Type.String({ rule: wildcardFault }) },
      { title: "WildcardHost" },
    ),
    strict({ type: Type.Literal("any") }, { title: "AnyHost" }),
  ],
  { title: "HostPattern", description: "Hosts that a rule of a secret is about." },
);
export type HostPattern = Static<typeof HostPattern>;

export const ViolationAction = tagged(
  "type",
  [
    strict({ type: Type.Literal("block") }, { title: "BlockAction" }),
    strict({ type: Type.Literal("block_and_log") }, { title: "BlockAndLogAction" }),
    strict({ type: Type.Literal("block_and_terminate") }, { title: "BlockAndTerminateAction" }),
    strict(
      { type: Type.Literal("passthrough"), hosts: Type.Array(HostPattern) },
      { title: "PassthroughAction" },
    ),
  ],
  {
    title: "ViolationAction",
    description: "What happens when a placeholder is sent to a host that may not have the secret.",
  },
);
export type ViolationAction = Static<typeof ViolationAction>;

const SecretSource = tagged(
  "type",
  [
    strict(
      { type: Type.Literal("env"), var: Type.String({ minLength: 1, rule: variableFault }) },
      { title: "EnvSecretSource" },
    ),
    strict(
      { type: Type.Literal("store"), reference: text({ minLength: 1 }) },
      { title: "StoreSecretSource" },
    ),
  ],
  { title: "SecretSource", description: "Where the value is read from at the start." },
);

const place = (byDefault: boolean) => optional(Type.Boolean(), { default: byDefault });

export const SecretInjectionInput = strict(
  { headers: place(true), basic_auth: place(true), query_params: place(false), body: place(false) },
  { title: "SecretInjectionInput", description: "Where in a request the secret may be put." },
);

export const SecretInput = strict(
  {
    env_var: Type.String({
      description: "The variable that the machine sees, holding the placeholder.",
      minLength: 1,
      rule: variableFault,
    }),
    value: optional(text(), { description: "Sealed, and never shown again.", default: "" }),
    source: optional(SecretSource),
    placeholder: text({ minLength: 1, description: "What the machine sees for the secret." }),
    allowed_hosts: optional(Type.Array(HostPattern), { default: [] }),
    injection: optional(SecretInjectionInput),
    on_violation: optional(ViolationAction, { description: "Null: as for all secrets." }),
    require_tls_identity: optional(Type.Boolean(), { default: true }),
  },
  { title: "SecretInput" },
);

export const SecretsInput = strict(
  {
    entries: optional(Type.Array(SecretInput), { default: [] }),
    on_violation: optional(ViolationAction, { default: { type: "block_and_log" } }),
  },
  { title: "SecretsInput", description: "Secrets that the machine sees only as placeholders." },
);
export type SecretsInput = Static<typeof SecretsInput>;
export type SecretInput = Static<typeof SecretInput>;
