import { styleText } from "node:util";
import type { Config } from "../runtime/config.ts";
import type { BootstrapResult } from "../services/organization/bootstrap.ts";
import type { ChosenEngine } from "./engine.ts";

/** A program that takes requests. */
export interface Running {
  url: string;
  /** Address of the services' own port; undefined: it is off. */
  rpc: string | undefined;
  /** URL of the admin port; undefined: it is off. */
  admin: string | undefined;
  config: Config;
  engine: ChosenEngine;
  bootstrap: BootstrapResult;
  /** Path of the file for a generated key. */
  keyFile: string;
}

/** What a person at the terminal has to know, the line for a first sandbox last. */
export function banner(running: Running): string {
  const { url, rpc, admin, engine, config } = running;
  const policies = policiesOf(engine);
  const facts = [
    ["Address", `${url} (reference: ${url}/docs)`],
    ["Engine", `${engine.engine.name}: ${engine.why}`],
    ...(policies ? [["Network", policies]] : []),
    ["Data", config.dataDir],
    ["Database", config.databaseUrl ? "DATABASE_URL" : "its own PostgreSQL, with the data"],
    ...(rpc ? [["RPC", `${rpc} (Connect, gRPC and gRPC-Web)`]] : []),
    ...(admin ? [["Admin", `${admin} (/healthz, /readyz, /metrics)`]] : []),
    ...keyFacts(running),
  ].map(([name, value]) => `  ${name?.padEnd(10)}${value}`);
  const warning = warningOf(engine);
  const parts = ["Sandgate is ready.", facts, warning, "Make a sandbox:", curlLine(running)];
  const paragraphs = parts.map((part) => [part].flat()).filter((lines) => lines.length > 0);
  return `\n${paragraphs.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function keyFacts({ bootstrap, config, keyFile }: Running): [string, string][] {
  const { generatedKey, keyIn } = bootstrap;
  const facts: [string, string][] = [];
  if (generatedKey)
    facts.push(["API key", `${generatedKey} (shown this once, kept in ${keyFile})`]);
  if (config.bootstrapApiKey && keyIn !== "environment") {
    facts.push([
      "API key",
      "BOOTSTRAP_API_KEY is not used: the database already has its keys, and this is none of them",
    ]);
  }
  return facts;
}

/** How network policies are kept; undefined: they are not, of which the warning speaks. */
export function policiesOf({ network }: ChosenEngine): string | undefined {
  return network?.state === "enforced" ? `policies are enforced ${network.why}` : undefined;
}

/** What the operator of this engine must not miss, in lines; none: nothing. */
export function warningOf({ engine, network, volumes }: ChosenEngine): string[] {
  const texts = [...textOf(engine.name, network), ...textOfVolumes(volumes)];
  const lines = texts.map((line) => `  WARNING  ${line}`);
  return lines.map((line) => styleText(["bold", "red"], line));
}

function textOf(engine: string, network: ChosenEngine["network"]): string[] {
  if (engine === "simulated")
    return ["NOTHING REALLY RUNS: the engine `simulated` only keeps books."];
  switch (network?.state) {
    case "accepted":
      return [
        "NETWORK POLICIES ARE NOT ENFORCED, as DOCKER_NETWORK_POLICY=unenforced accepts:",
        "every sandbox reaches whatever this host's bridge reaches, private addresses too.",
      ];
    case "impossible":
      return [
        `NO SANDBOX CAN HAVE A NETWORK: policies cannot be enforced here: ${network.why}.`,
        "It takes root, a local Docker socket, and the programs nft and nsenter. Until then sandboxes",
        'are created with "network": {"enabled": false}; or accept sandboxes that reach whatever',
        "this host's bridge reaches, private addresses too, by DOCKER_NETWORK_POLICY=unenforced.",
      ];
    default:
      return [];
  }
}

function textOfVolumes(volumes: ChosenEngine["volumes"]): string[] {
  if (volumes?.possible !== false) return textOfImages(volumes);
  return [
    `NO SANDBOX CAN MOUNT VOLUMES: they cannot be mounted here: ${volumes.why}.`,
    "It takes root, a local Docker socket whose daemon sees VOLUMES_DIR, and the program mount (util-linux).",
  ];
}

function textOfImages(volumes: ChosenEngine["volumes"]): string[] {
  if (!volumes?.images) return [];
  const { possible, why } = volumes.images;
  if (possible)
    return [
      "DISK IMAGES ARE MOUNTED, as DOCKER_DISK_IMAGES=loop accepts: this host's kernel reads file systems",
      "that tenants wrote, and none promises to survive one that was made to attack it.",
    ];
  return [
    `NO SANDBOX CAN MOUNT A DISK IMAGE: DOCKER_DISK_IMAGES=loop, but they cannot be mounted here: ${why}.`,
    "It takes loop devices, ext4, and the programs losetup, blkid and mount (util-linux), ln and mknod (coreutils).",
  ];
}

/** Works when pasted into a shell on this machine, as often as it is. */
function curlLine({ url, bootstrap, keyFile, engine }: Running): string {
  const key = {
    environment: "$BOOTSTRAP_API_KEY",
    file: `$(cat ${quote(keyFile)})`,
    elsewhere: "$YOUR_API_KEY",
  }[bootstrap.keyIn];
  const withoutNetwork =
    engine.network?.state === "impossible" ? ', "network": {"enabled": false}' : "";
  return [
    `curl -sS '${url}/v1/sandboxes?start=true&wait_for=running'`,
    `-H "Authorization: Bearer ${key}"`,
    "-H 'Content-Type: application/json'",
    `-d '{"image": {"type": "oci", "reference": "alpine"}${withoutNetwork}}'`,
  ].join(" ");
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
