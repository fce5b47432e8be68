import { styleText } from "node:util";
import type { Config } from "../runtime/env.ts";
import type { BootstrapResult } from "../services/organization/bootstrap.ts";
import type { ChosenEngine } from "./engine.ts";

/** A program that takes requests. */
export interface Running {
  url: string;
  /** Address of the services' own port; undefined: it is off. */
  rpc: string | undefined;
  config: Config;
  engine: ChosenEngine;
  bootstrap: BootstrapResult;
  /** Path of the file for a generated key. */
  keyFile: string;
}

/** What a person at the terminal has to know, the line for a first sandbox last. */
export function banner(running: Running): string {
  const { url, rpc, engine, config } = running;
  const facts = [
    ["Address", `${url} (reference: ${url}/docs)`],
    ["Engine", `${engine.engine.name}: ${engine.why}`],
    ["Data", config.dataDir],
    ["Database", config.databaseUrl ? "DATABASE_URL" : "its own PostgreSQL, with the data"],
    ...(rpc ? [["RPC", `${rpc} (Connect, gRPC and gRPC-Web)`]] : []),
    ...keyFacts(running),
  ].map(([name, value]) => `  ${name?.padEnd(10)}${value}`);
  const warning = warningOf(engine.engine.name).map((line) => styleText(["bold", "red"], line));
  const parts = ["Sandgate is ready.", facts, warning, "Make a sandbox:", curlLine(running)];
  return `\n${parts.map((part) => [part].flat().join("\n")).join("\n\n")}\n`;
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

function warningOf(engine: string): string[] {
  const text =
    engine === "simulated"
      ? ["NOTHING REALLY RUNS: the engine `simulated` only keeps books."]
      : [
          "THE DEFAULT NETWORK POLICY IS NOT ENFORCED by the docker engine yet:",
          "a sandbox reaches whatever this host's bridge reaches, private addresses too.",
        ];
  return text.map((line) => `  WARNING  ${line}`);
}

/** Works when pasted into a shell on this machine, as often as it is. */
function curlLine({ url, bootstrap, keyFile }: Running): string {
  const key = {
    environment: "$BOOTSTRAP_API_KEY",
    file: `$(cat ${quote(keyFile)})`,
    elsewhere: "$YOUR_API_KEY",
  }[bootstrap.keyIn];
  return [
    `curl -sS '${url}/v1/sandboxes?start=true&wait_for=running'`,
    `-H "Authorization: Bearer ${key}"`,
    "-H 'Content-Type: application/json'",
    `-d '{"image": {"type": "oci", "reference": "alpine"}}'`,
  ].join(" ");
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
