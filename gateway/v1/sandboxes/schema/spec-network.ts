import Type, { type Static } from "typebox";
import { INT64_MAX, nullable, words } from "../../../validation/schema.ts";
import { ACTIONS, Destination, DIRECTIONS, PortRange, PROTOCOLS } from "./network.ts";
import { HostPattern, ViolationAction } from "./secrets.ts";
import { Dns, Interface, PublishedPort, Tls } from "./spec-network-fixed.ts";

export const NetworkRule = Type.Object(
  {
    direction: words(DIRECTIONS),
    destination: Destination,
    action: words(ACTIONS),
    ports: Type.Array(PortRange, { description: "Empty: any port." }),
    protocols: Type.Array(words(PROTOCOLS), { description: "Empty: any protocol." }),
  },
  { title: "NetworkRule" },
);

export const NetworkPolicy = Type.Object(
  {
    default_egress: words(ACTIONS),
    default_ingress: words(ACTIONS),
    rules: Type.Array(NetworkRule, { description: "The first that matches a direction decides." }),
  },
  { title: "NetworkPolicy" },
);
export type NetworkPolicy = Static<typeof NetworkPolicy>;

export const SpecSecret = Type.Object(
  {
    env_var: Type.String(),
    placeholder: Type.String(),
    allowed_hosts: Type.Array(HostPattern),
    injection: Type.Object(
      {
        headers: Type.Boolean(),
        basic_auth: Type.Boolean(),
        query_params: Type.Boolean(),
        body: Type.Boolean(),
      },
      { title: "SecretInjection" },
    ),
    on_violation: ViolationAction,
  },
  {
    title: "Secret",
    description: "A secret without its value; `on_violation` is the effective one.",
  },
);
export type SpecSecret = Static<typeof SpecSecret>;

export const SpecNetwork = Type.Object(
  {
    enabled: Type.Boolean(),
    ports: Type.Array(PublishedPort, { description: "Always empty today." }),
    trust_host_cas: Type.Boolean({ description: "Always false today." }),
    dns: nullable(Dns, { description: "Always null today." }),
    interface: nullable(Interface, { description: "Always null today." }),
    max_connections: nullable(Type.Integer({ format: "int64", minimum: 0, maximum: INT64_MAX })),
    policy: nullable(NetworkPolicy, { description: "Null: the default policy." }),
    secrets: Type.Array(SpecSecret),
    tls: nullable(Tls, { description: "Always null today." }),
  },
  { title: "Network" },
);
export type SpecNetwork = Static<typeof SpecNetwork>;
