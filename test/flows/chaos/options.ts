import { parseArgs } from "node:util";

export interface ChaosOptions {
  /** How many processes are killed. */
  kills: number;
  seed: string;
  engine: "simulated" | "docker";
  /** Whether containers outlive dockerd; docker only. */
  liveRestore: boolean;
  clients: number;
  /** Clients that have volumes. */
  keepers: number;
  /** How long everything may take to settle, in seconds. */
  settleSecs: number;
  /** Keeps the logs and the database's folder. */
  keep: boolean;
}

const USAGE =
  "npm run chaos -- --kills N --seed S [--engine simulated|docker] [--no-live-restore] [--clients N] [--keepers N] [--keep]";

/** @throws Error with the usage where the arguments do not fit */
export function readOptions(args: readonly string[]): ChaosOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      allowNegative: true,
      options: {
        kills: { type: "string", default: "20" },
        seed: { type: "string", default: String(Date.now()) },
        engine: { type: "string", default: "simulated" },
        "live-restore": { type: "boolean", default: true },
        clients: { type: "string" },
        keepers: { type: "string" },
        keep: { type: "boolean", default: false },
      },
    });
    const engine = values.engine;
    if (engine !== "simulated" && engine !== "docker") throw new Error(`no engine ${engine}`);
    return {
      kills: whole("kills", values.kills),
      seed: values.seed,
      engine,
      liveRestore: values["live-restore"],
      clients: whole("clients", values.clients ?? (engine === "docker" ? "5" : "9")),
      keepers: whole("keepers", values.keepers ?? (engine === "docker" ? "2" : "4")),
      settleSecs: 120,
      keep: values.keep,
    };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
  }
}

function whole(name: string, text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new Error(`--${name} must be a whole number`);
  return Number(text);
}
