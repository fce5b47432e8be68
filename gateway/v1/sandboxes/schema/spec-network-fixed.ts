import Type from "typebox";
import { nullable, words } from "../../../validation/schema.ts";

// Parts of a network that no sandbox has today; clients may meet them once one has.

const port = () => Type.Integer({ format: "int32", minimum: 0, maximum: 65_535 });
const nullableText = (description: string) => nullable(Type.String(), { description });

export const PublishedPort = Type.Object(
  {
    host_port: port(),
    guest_port: port(),
    host_bind: Type.String({ description: "Address of the host." }),
    protocol: words(["tcp", "udp"]),
  },
  { title: "PublishedPort", description: "A port of the host that leads into the machine." },
);

export const Dns = Type.Object(
  {
    nameservers: Type.Array(Type.String(), { description: "Empty: the host's." }),
    query_timeout_ms: Type.Integer({ format: "int64", minimum: 0, default: 5000 }),
    rebind_protection: Type.Boolean({ default: true }),
  },
  { title: "Dns" },
);

export const Interface = Type.Object(
  {
    ipv4_address: nullableText("The machine's IPv4 address."),
    ipv4_pool: nullableText("The prefix it is taken from."),
    ipv6_address: nullableText("The machine's IPv6 address."),
    ipv6_pool: nullableText("The prefix it is taken from."),
    mac: nullable(
      Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), { minItems: 6, maxItems: 6 }),
      { description: "Six octets." },
    ),
    mtu: nullable(Type.Integer({ format: "int32", minimum: 0 })),
  },
  { title: "Interface" },
);

export const Tls = Type.Object(
  {
    enabled: Type.Boolean(),
    intercepted_ports: Type.Array(port(), { default: [443] }),
    bypass: Type.Array(Type.String(), { description: "Hosts whose traffic is left alone." }),
    block_quic_on_intercept: Type.Boolean(),
    verify_upstream: Type.Boolean(),
    upstream_ca_cert: Type.Array(Type.String(), { description: "Paths of PEM files." }),
    scoped_upstream_ca_cert: Type.Array(
      Type.Object({ pattern: Type.String(), path: Type.String() }, { title: "ScopedCaCert" }),
    ),
    scoped_verify_upstream: Type.Array(
      Type.Object({ pattern: Type.String(), verify: Type.Boolean() }, { title: "ScopedVerify" }),
    ),
    intercept_ca: Type.Object(
      {
        cert_path: nullableText("Null: made by the deployment."),
        key_path: nullableText("Null: made by the deployment."),
      },
      { title: "InterceptCa" },
    ),
    cache: Type.Object(
      {
        capacity: Type.Integer({ format: "int32", minimum: 0, default: 1000 }),
        validity_hours: Type.Integer({ format: "int64", minimum: 0, default: 24 }),
      },
      { title: "CertificateCache" },
    ),
  },
  { title: "Tls", description: "Interception of TLS." },
);
